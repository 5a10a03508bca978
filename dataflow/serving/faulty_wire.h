// Messages on their way between a consumer and a data server, as MILLRACE_FAULTS wants them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "millrace/base/process/injected_faults.h"

namespace millrace::serving {

/// Those of a message, in order.
using Frames = std::vector<zmq::message_t>;

/// Of one link, at the consumer's end. What becomes of a message is a function of the seed, the
/// link, the message's kind, its batch's number and how many of these there were before. For one
/// thread.
class FaultyWire {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Way { in, out };

  /// `faults` is borrowed. `link`: the server's place in the list of this rank's.
  FaultyWire(const InjectedFaults& faults, std::int64_t rank, std::int64_t link);

  /// A message, whole and readable, begins its way.
  void enter(Way way, Frames frames, Clock::time_point now);
  /// The next that has come to its end; nothing: none has.
  std::optional<Frames> leave(Way way, Clock::time_point now);
  /// The connection has gone, and with it what was on its way.
  void clear();

 private:
  struct Travelling {
    Clock::time_point until;
    Frames frames;
  };

  const InjectedFaults& faults_;
  const std::uint64_t rank_, link_;
  // How often a message of this way, kind and number has begun its way.
  std::map<std::array<std::int64_t, 3>, std::uint64_t> seen_;
  std::array<std::deque<Travelling>, 2> travelling_;  // by way
};

}  // namespace millrace::serving
