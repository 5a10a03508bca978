// Batches that nobody waits for yet are received at once instead of segment by segment.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "millrace/base/clock.h"
#include "millrace/base/files.h"

namespace millrace::serving {

/// Of a consumer's TCP connection. Its reader is woken for each 64 KB that come, and reads about as
/// fast as they come: on one machine that costs as much as copying them. So while other batches
/// wait for training, what comes gathers in the kernel for `kFor` (SO_RCVLOWAT), or until the
/// kernel's buffer has half of what it may hold, and is then read at once. One thread.
class Gathering {
 public:
  static constexpr std::chrono::milliseconds kFor{10};

  /// A connection is there: libzmq's descriptor of it.
  void open(int descriptor);
  void close();

  /// A batch of `bytes` has been asked for. Does nothing without a connection, or if it gathers.
  void begin(std::size_t bytes, Clock::time_point now);
  void end();
  /// Begun, and not ended.
  bool is_on() const { return until_.has_value(); }
  bool is_over(Clock::time_point now) const { return until_ && now >= *until_; }

 private:
  void tell_from(std::size_t bytes);

  // A descriptor of its own, since libzmq closes its whenever it likes and the number is reused.
  UniqueFd connection_;
  std::optional<Clock::time_point> until_;
};

}  // namespace millrace::serving
