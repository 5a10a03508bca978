#include "millrace/dataflow/serving/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <zmq.hpp>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/serving/polling.h"

namespace millrace::serving {
namespace {

constexpr std::size_t kMostWork = 4;

std::atomic<std::int64_t> received_here = 0;

using Kind = StatusAnswer::Kind;

constexpr std::int64_t kMaxStatusBytes = 2 << 20;

/// A connection to one server.
class Line {
 public:
  Line(zmq::context_t& context, const std::string& endpoint, const std::optional<LinkKeys>& keys)
      : socket_(consumer_socket(context, endpoint, keys, kMaxStatusBytes)),
        events_(context, socket_, ZMQ_EVENT_ALL) {
    try {
      socket_.connect(endpoint);
    } catch (const zmq::error_t& problem) {
      throw ConfigError(fmt::format("cannot connect to '{}': {}", endpoint, problem.what()));
    }
  }

  /// Handles events, sends the request, and receives the answer.
  void poll() {
    handle_events();
    if (!is_asked_ && answer.kind != Kind::refused)  // one refusal suffices
      is_asked_ =
          socket_.send(zmq::buffer(encode(AskStatus{1})), zmq::send_flags::dontwait).has_value();
    receive();
  }

  /// Adds the sockets to poll.
  void add_to(std::vector<zmq::pollitem_t>& items) {
    const short wanted = is_asked_ ? ZMQ_POLLIN : ZMQ_POLLIN | ZMQ_POLLOUT;
    items.push_back({socket_.handle(), 0, wanted, 0});
    items.push_back({events_.socket().handle(), 0, ZMQ_POLLIN, 0});
  }

  StatusAnswer answer;

 private:
  /// Updates the answer from connection events.
  void handle_events() {
    while (const auto event = events_.take()) switch (event->what) {
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
          answer = {};
          break;
        case ZMQ_EVENT_CONNECT_RETRIED:
          if (answer.kind == Kind::silent) answer = {Kind::gone, "no process listens there", {}};
          break;
        case ZMQ_EVENT_DISCONNECTED:
          is_asked_ = false;
          break;
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
          answer = {Kind::refused, "does not allow this client's key", {}};
          break;
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
          answer = {Kind::refused, "ended the handshake: another program listens there", {}};
          break;
        default:
          break;
      }
  }

  void receive() try {
    for (zmq::message_t part; socket_.recv(part, zmq::recv_flags::dontwait);) {
      const auto message = decode(part.to_string_view(), "message");
      if (const auto* refusal = std::get_if<Refusal>(&message))
        answer = {Kind::refused, refusal->why, {}};
      if (const auto* status = std::get_if<Status>(&message))
        answer = {Kind::answered, "", nlohmann::ordered_json::parse(status->json)};
    }
  } catch (const std::exception& problem) {
    answer = {Kind::refused, fmt::format("sent an unreadable answer ({})", problem.what()), {}};
  }

  zmq::socket_t socket_;
  SocketEvents events_;  // declared after the socket, so that it is destroyed before it
  bool is_asked_ = false;
};

}  // namespace

nlohmann::ordered_json process_status() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto memory = rss_bytes();  // may exceed the reported peak by some pages
  return {{"host", host.data()},
          {"process", ::getpid()},
          {"cpu_s", cpu_seconds()},
          {"memory_bytes", memory},
          {"memory_peak_bytes", std::max(memory, peak_rss_bytes())}};
}

nlohmann::ordered_json work_status(const FlowReport& flow) {
  auto work = nlohmann::ordered_json::array();
  for (const auto& [stage, sample, seconds] : flow.in_work) {
    if (work.size() == kMostWork) break;
    work.push_back({{"stage", stage}, {"sample", sample}, {"for_s", seconds}});
  }
  return work;
}

std::int64_t received_bytes() { return received_here; }
void count_received(std::int64_t bytes) { received_here += bytes; }

std::string status_text(const nlohmann::ordered_json& status) {
  return status.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<StatusAnswer> ask_status(const std::vector<std::string>& endpoints,
                                     const std::optional<LinkKeys>& keys,
                                     std::chrono::milliseconds timeout) {
  auto context = new_context();
  std::list<Line> lines;
  for (const auto& endpoint : endpoints) lines.emplace_back(context, endpoint, keys);
  const auto end = Clock::now() + timeout;
  while (true) {
    std::vector<zmq::pollitem_t> items;
    for (auto& line : lines) {
      line.poll();
      if (line.answer.kind == Kind::silent) line.add_to(items);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (items.empty() || left.count() <= 0) break;
    zmq_poll(items.data(), static_cast<int>(items.size()), static_cast<long>(left.count()));
  }
  std::vector<StatusAnswer> answers;
  for (auto& line : lines) answers.push_back(std::move(line.answer));
  return answers;
}

}  // namespace millrace::serving
