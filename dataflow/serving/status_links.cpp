#include "millrace/dataflow/serving/status_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"

namespace millrace::serving {
namespace {

constexpr std::int64_t kMostStatusBytes = 2 << 20;
constexpr int kTryAgainMs = 100, kMostTryAgainMs = 2000, kMostUnsent = 16;
constexpr std::chrono::milliseconds kLookForStop{100};

}  // namespace

StatusLinks::StatusLinks(std::vector<StatusSource> sources, Question question)
    : sources_(std::move(sources)), question_(question) {
  for (std::size_t i = 0; i < sources_.size(); ++i)
    for (const auto& endpoint : sources_[i].endpoints)
      lines_.emplace_back(context_, i, endpoint, sources_[i].keys);
}

StatusLinks::Line::Line(zmq::context_t& context, std::size_t of, const std::string& endpoint,
                        const std::optional<LinkKeys>& keys)
    : source(of),
      socket(context, zmq::socket_type::dealer),
      events(context, socket, ZMQ_EVENT_ALL) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
  socket.set(zmq::sockopt::immediate, true);  // nothing waits for a process to come back
  socket.set(zmq::sockopt::sndhwm, kMostUnsent);
  socket.set(zmq::sockopt::maxmsgsize, kMostStatusBytes);
  socket.set(zmq::sockopt::reconnect_ivl, kTryAgainMs);
  socket.set(zmq::sockopt::reconnect_ivl_max, kMostTryAgainMs);
  if (keys) {
    socket.set(zmq::sockopt::curve_serverkey, keys->server);
    socket.set(zmq::sockopt::curve_publickey, keys->own.public_key);
    socket.set(zmq::sockopt::curve_secretkey, keys->own.secret_key);
  }
  try {
    socket.connect(endpoint);
  } catch (const zmq::error_t& problem) {
    throw ConfigError(fmt::format("cannot connect to '{}': {}", endpoint, problem.what()));
  }
}

std::vector<StatusAnswer> StatusLinks::ask(std::chrono::milliseconds most,
                                           const std::stop_token& stop) {
  ++number_;
  for (auto& line : lines_) {
    line.is_asked = false;
    if (line.answer.kind == Kind::answered) line.answer = {};
  }
  const auto end = Clock::now() + most;
  while (!stop.stop_requested()) {
    std::vector<zmq::pollitem_t> items;
    for (auto& line : lines_) {
      see(line);
      if (!line.is_asked && line.answer.kind != Kind::refused) send(line);  // one refusal will do
      receive(line);
      if (is_settled(line.source)) continue;
      const short wanted = line.is_asked ? ZMQ_POLLIN : ZMQ_POLLIN | ZMQ_POLLOUT;
      items.push_back({line.socket.handle(), 0, wanted, 0});
      items.push_back({line.events.socket().handle(), 0, ZMQ_POLLIN, 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (items.empty() || left.count() <= 0) break;
    zmq_poll(items.data(), static_cast<int>(items.size()),
             static_cast<long>(std::min(left, kLookForStop).count()));
  }
  std::vector<StatusAnswer> answers(sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    // An answer counts most, then silence: another of its addresses may be nobody's.
    const Line* best = nullptr;
    for (const auto& line : lines_)
      if (line.source == i && (!best || line.answer.kind < best->answer.kind)) best = &line;
    if (best) answers[i] = best->answer;
  }
  return answers;
}

bool StatusLinks::is_settled(std::size_t source) const {
  bool all_lost = true;
  for (const auto& line : lines_) {
    if (line.source != source) continue;
    if (line.answer.kind == Kind::answered) return true;
    all_lost &= line.answer.kind != Kind::silent;
  }
  return all_lost;
}

/// What has become of the connection.
void StatusLinks::see(Line& line) {
  while (const auto event = line.events.take()) switch (event->what) {
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        line.answer = {};
        break;
      case ZMQ_EVENT_CONNECT_RETRIED:
        if (line.answer.kind == Kind::silent)
          line.answer = {Kind::gone, "nobody listens there", {}};
        break;
      case ZMQ_EVENT_DISCONNECTED:
        line.is_asked = false;
        break;
      case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        line.answer = {Kind::refused, "does not allow our key", {}};
        break;
      case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        line.answer = {Kind::refused, "broke off the handshake: somebody else listens there", {}};
        break;
      default:
        break;
    }
}

void StatusLinks::send(Line& line) {
  const auto asked =
      encode(AskStatus{number_, sources_[line.source].name, question_ == Question::events});
  line.is_asked = line.socket.send(zmq::buffer(asked), zmq::send_flags::dontwait).has_value();
}

void StatusLinks::receive(Line& line) try {
  for (zmq::message_t part; line.socket.recv(part, zmq::recv_flags::dontwait);) {
    const auto message = decode(part.to_string_view(), "message");
    if (const auto* refusal = std::get_if<Refusal>(&message))
      line.answer = {Kind::refused, refusal->why, {}};
    const auto* status = std::get_if<Status>(&message);
    if (status && status->number == number_)  // others come too late
      line.answer = {Kind::answered, "", nlohmann::ordered_json::parse(status->json)};
  }
} catch (const std::exception& problem) {
  line.answer = {
      Kind::refused, fmt::format("answers what cannot be read ({})", problem.what()), {}};
}

}  // namespace millrace::serving
