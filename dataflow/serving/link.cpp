#include "millrace/dataflow/serving/link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <zmq_addon.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/dataflow/store/batch_codec.h"

namespace millrace::serving {
namespace {

constexpr std::int64_t kMostBatchBytes = std::int64_t{1} << 30;  // pixels of a batch
constexpr std::size_t kMostHeadBytes = std::size_t{64} << 20;    // a message without pixels
constexpr int kHandshakeTimeoutMs = 5000, kLeaveMs = 500;
constexpr std::chrono::seconds kPingEvery{1}, kGiveUpAfter{5}, kHelloAgainAfter{2};
constexpr int kMostBadMessages = 3;
constexpr int kMostAtOnce = 16;  // messages of one server before those of others

/// Returns a received frame's bytes, which own the frame.
Frame frame_of(zmq::message_t message) {
  const auto owner = std::make_shared<zmq::message_t>(std::move(message));
  return {{owner, static_cast<std::uint8_t*>(owner->data())}, owner->size()};
}

}  // namespace

Link::Link(zmq::context_t& context, std::string endpoint, std::optional<LinkKeys> keys, Hello hello)
    : context_(context),
      endpoint_(std::move(endpoint)),
      keys_(std::move(keys)),
      hello_(std::move(hello)) {
  open();
}

void Link::open() {
  auto& socket = socket_.emplace(consumer_socket(context_, endpoint_, keys_, kMostBatchBytes));
  socket.set(zmq::sockopt::rcvhwm, static_cast<int>(2 * kMostCredit));
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeTimeoutMs);
  events_.emplace(context_, socket, ZMQ_EVENT_ALL);
  try {
    socket.connect(endpoint_);
  } catch (const zmq::error_t& problem) {
    throw ConfigError(fmt::format(
        "data.source: cannot connect to '{}': {}; expected tcp://HOST:PORT or ipc://FILE",
        endpoint_, problem.what()));
  }
}

void Link::start_over(Clock::time_point now, std::string why) {
  log_warning("data server {}: {}", endpoint_, why);
  state_text_ = std::move(why);
  state_ = State::down;
  heard_ = now;
  events_.reset();
  socket_.reset();
  open();
}

void Link::greet(Clock::time_point now) {
  state_ = State::greeting;
  heard_ = pinged_ = now;
  asked_.clear();  // the server forgets earlier requests
  auto hello = hello_;
  hello.held = held();
  send(std::move(hello));
}

void Link::poll(Clock::time_point now, const std::function<void(Answer)>& answered) {
  while (const auto event = events_->take()) on_event(*event, now);
  try {
    for (int i = 0; i < kMostAtOnce; ++i) {
      Frames frames;
      if (!zmq::recv_multipart(*socket_, std::back_inserter(frames), zmq::recv_flags::dontwait))
        break;
      on_message(std::move(frames), now, answered);
    }
  } catch (const DataError& problem) {
    // The last batches of a server that has exited cannot be read, since its memory is gone.
    const bool has_gone = view_ && !view_->is_there();
    start_over(
        now, has_gone ? "exited" : fmt::format("sent an unreadable message ({})", problem.what()));
    refused_for_good_ = !has_gone && ++bad_messages_ >= kMostBadMessages;
    if (refused_for_good_) state_ = State::refused;
  }
  if (state_ == State::refused && !refused_for_good_ && now - heard_ > kHelloAgainAfter) greet(now);
  if ((state_ == State::greeting || state_ == State::live) && now - heard_ > kGiveUpAfter)
    start_over(now, fmt::format("did not answer for {} s; reconnecting", kGiveUpAfter.count()));
  if (state_ == State::live && view_)
    if (auto pieces = view_->take_released(); !pieces.empty()) send(Release{std::move(pieces)});
  if (state_ == State::live && now - pinged_ > kPingEvery) {
    pinged_ = now;
    send(Ping{++pings_});
  }
}

void Link::on_event(const SocketEvents::Event& event, Clock::time_point now) {
  switch (event.what) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      greet(now);
      break;
    case ZMQ_EVENT_DISCONNECTED:
      if (state_ == State::live) log_warning("data server {}: closed the connection", endpoint_);
      if (state_ != State::down) state_text_ = "closed the connection";
      state_ = State::down;
      break;
    case ZMQ_EVENT_CONNECT_RETRIED:
      if (state_ == State::down && state_text_.starts_with("has not"))
        state_text_ = "cannot be reached";
      break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      state_text_ = "does not allow this client's key";
      break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      state_text_ =
          "ended the handshake: it is not a data server, its key is not data.source_server_key, or "
          "it requires keys and none are set";
      break;
    default:
      break;
  }
}

void Link::welcome(const Welcome& welcome) {
  if (!welcome.probe)
    view_.reset();
  else if (!view_ || view_->token() != welcome.probe->token)
    view_ = SharedView::open(*welcome.probe);
  state_text_ = "connected";
  log_info("data server {}: connected, batches arrive {}", endpoint_,
           view_ ? "through shared memory" : "through the connection");
  state_ = State::live;
  epoch_size_ = welcome.epoch_size;
  facts_ = welcome.facts;
  ++age_;
}

void Link::refuse(std::string why) {
  if (state_text_ != why) log_error("data server {}: {}", endpoint_, why);
  state_text_ = std::move(why);
  state_ = State::refused;
}

void Link::on_message(Frames frames, Clock::time_point now,
                      const std::function<void(Answer)>& answered) {
  if (const auto bytes = frames.front().size(); bytes > kMostHeadBytes)
    throw DataError("message",
                    fmt::format("is {} bytes; the maximum is {}", bytes, kMostHeadBytes));
  auto message = decode(frames.front().to_string_view(), "message");
  heard_ = now;
  if (const auto* in = std::get_if<Welcome>(&message)) {
    welcome(*in);
  } else if (auto* refusal = std::get_if<Refusal>(&message)) {
    refuse(std::move(refusal->why));
    refused_for_good_ = refusal->for_good;
  } else if (std::holds_alternative<Stranger>(message)) {
    greet(now);
  } else if (const auto* head = std::get_if<BatchHead>(&message)) {
    if (!asked_.contains(head->number)) return give_back(*head);
    auto answer = take(*head, frames);
    bad_messages_ = 0;
    asked_.erase(head->number);
    answered(std::move(answer));
  } else if (auto* failure = std::get_if<Failure>(&message)) {
    if (asked_.erase(failure->number) > 0)
      answered({failure->number, std::nullopt, {}, std::move(*failure)});
  } else if (const auto* pong = std::get_if<Pong>(&message)) {
    compare(*pong);
  } else {
    throw DataError("message", "a server does not send this");
  }
}

/// Messages of a server keep their order, so a batch that it neither owes nor has sent before its
/// answer to a ping was lost. Older servers do not report what they owe.
void Link::compare(const Pong& pong) {
  if (pong.number == 0 || pong.number != pings_) return;
  std::erase_if(asked_, [&](const auto& entry) {
    const auto& [number, when] = entry;
    const bool is_lost = when < pinged_ && !std::ranges::count(pong.owed, number);
    if (is_lost) lost_.push_back(number);
    return is_lost;
  });
}

/// Releases the piece of an unwanted answer, unless an earlier batch still holds it.
void Link::give_back(const BatchHead& unwanted) {
  if (!unwanted.piece || !view_) return;
  const auto piece = unwanted.piece->piece;
  if (!std::ranges::count(view_->held(), piece)) send(Release{{piece}});
}

Frame Link::pixels_of(const BatchHead& head, Frames& frames) {
  if (head.piece) {
    if (!view_) throw DataError("message", "refers to shared memory, which was not requested");
    return view_->take(*head.piece);
  }
  if (frames.size() != 2) throw DataError("message", "has no pixels");
  return frame_of(std::move(frames.back()));
}

Link::Answer Link::take(const BatchHead& head, Frames& frames) {
  auto batch = decode_batch({head.batch.data(), head.batch.size()}, pixels_of(head, frames),
                            fmt::format("batch {} of {}", head.number, endpoint_));
  return {head.number,
          Delivery<Batch>{std::move(batch), head.cursor, head.epoch, head.progress, head.number},
          head.skipped, std::nullopt};
}

void Link::ask(std::int64_t number) {
  asked_[number] = Clock::now();
  send(Ask{{number}, view_ ? ::getpid() : 0});
}

void Link::leave() {
  if (!is_live()) return;
  socket_->set(zmq::sockopt::linger, kLeaveMs);
  send(Bye{held()});
}

std::vector<std::int64_t> Link::held() const {
  return view_ ? view_->held() : std::vector<std::int64_t>();
}

void Link::send(Message message) {
  const auto bytes = encode(std::move(message));
  // If the connection has just closed the message is lost, as it would be a moment later.
  static_cast<void>(socket_->send(zmq::buffer(bytes), zmq::send_flags::dontwait));
}

}  // namespace millrace::serving
