#include "millrace/dataflow/serving/polling.h"

#include <atomic>
#include <cstring>

namespace millrace::serving {

SocketEvents::SocketEvents(zmq::context_t& context, zmq::socket_t& socket, int wanted)
    : watched_(socket), pair_(context, zmq::socket_type::pair) {
  static std::atomic<std::uint64_t> count = 0;
  const auto address = "inproc://events-" + std::to_string(count++);
  if (zmq_socket_monitor(socket.handle(), address.c_str(), wanted) != 0) throw zmq::error_t();
  pair_.set(zmq::sockopt::linger, 0);
  pair_.connect(address);
}

// Otherwise libzmq's threads might wait for ever to deliver an event.
SocketEvents::~SocketEvents() { zmq_socket_monitor(watched_.handle(), nullptr, 0); }

std::optional<SocketEvents::Event> SocketEvents::take() {
  zmq::message_t event, address;
  if (!pair_.recv(event, zmq::recv_flags::dontwait)) return std::nullopt;
  if (event.more()) static_cast<void>(pair_.recv(address));
  std::uint16_t what = 0;
  std::uint32_t value = 0;
  if (event.size() != sizeof(what) + sizeof(value)) return Event{};
  const auto* bytes = static_cast<const char*>(event.data());
  std::memcpy(&what, bytes, sizeof(what));
  std::memcpy(&value, bytes + sizeof(what), sizeof(value));
  return Event{what, static_cast<std::int32_t>(value)};
}

}  // namespace millrace::serving
