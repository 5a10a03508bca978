// A consumer's connection to one data server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "millrace/dataflow/serving/keys.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/serving/polling.h"
#include "millrace/dataflow/serving/shared_memory.h"

namespace millrace::serving {

/// Connects, sends hello and pings, and reconnects if the server is gone or silent. For one thread.
class Link {
 public:
  using Clock = std::chrono::steady_clock;

  Link(zmq::context_t& context, std::string endpoint, std::optional<LinkKeys> keys, Hello hello);

  /// Sockets to poll; both change on reconnection.
  zmq::socket_ref socket() { return *socket_; }
  zmq::socket_ref events() { return events_->socket(); }

  /// A server's answer to an Ask.
  struct Answer {
    std::int64_t number = 0;
    std::optional<Delivery<Batch>> batch;
    std::vector<SkippedSample> skipped;
    std::optional<Failure> failure;  // set instead of the batch
  };
  /// Handles all messages and timeouts; calls `answered` with each answer.
  void poll(Clock::time_point now, const std::function<void(Answer)>& answered);

  void ask(std::int64_t number);
  /// Returns the numbers whose request or answer was lost since the last call, to be requested
  /// again.
  std::vector<std::int64_t> take_lost() { return std::exchange(lost_, {}); }
  /// Sends goodbye; must be the last call.
  void leave();

  /// Returns true while the server responds after its welcome. `age` changes with each welcome.
  bool is_live() const { return state_ == State::live; }
  std::int64_t age() const { return age_; }
  /// Returns true if the server refuses this consumer permanently.
  bool is_refused_for_good() const { return state_ == State::refused && refused_for_good_; }
  const std::string& endpoint() const { return endpoint_; }
  /// Returns e.g. "tcp://a:5555: closed the connection", the latest state.
  std::string text() const { return endpoint_ + ": " + state_text_; }
  /// Samples per epoch; nullopt before the welcome.
  std::optional<std::int64_t> epoch_size() const { return epoch_size_; }
  /// The server's facts; empty before the welcome.
  const Facts& facts() const { return facts_; }
  /// Stops requests to this server, since its batches differ.
  void refuse(std::string why);

 private:
  enum class State { down, greeting, live, refused };
  using Frames = std::vector<zmq::message_t>;

  void open();
  void start_over(Clock::time_point now, std::string why);
  void greet(Clock::time_point now);
  void on_event(const SocketEvents::Event& event, Clock::time_point now);
  void welcome(const Welcome& welcome);
  void on_message(Frames frames, Clock::time_point now,
                  const std::function<void(Answer)>& answered);
  void compare(const Pong& pong);
  void give_back(const BatchHead& unwanted);
  Answer take(const BatchHead& head, Frames& frames);
  Frame pixels_of(const BatchHead& head, Frames& frames);
  std::vector<std::int64_t> held() const;
  void send(Message message);

  zmq::context_t& context_;
  const std::string endpoint_;
  const std::optional<LinkKeys> keys_;
  const Hello hello_;
  std::optional<zmq::socket_t> socket_;
  std::optional<SocketEvents> events_;
  State state_ = State::down;
  bool refused_for_good_ = false;
  int bad_messages_ = 0;  // since the last valid batch
  std::int64_t age_ = 0;
  std::string state_text_ = "has not answered yet";
  std::optional<std::int64_t> epoch_size_;
  Facts facts_;
  std::unique_ptr<SharedView> view_;  // the server's memory; nullptr if not accessible
  Clock::time_point heard_, pinged_;
  std::int64_t pings_ = 0;
  std::map<std::int64_t, Clock::time_point> asked_;  // open requests since the last hello
  std::vector<std::int64_t> lost_;
};

}  // namespace millrace::serving
