#include "millrace/dataflow/serving/polling.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "millrace/base/errors.h"

namespace millrace::serving {

zmq::context_t new_context() {
  constexpr rlim_t kNeeded = 32;  // files of its threads and of a few connections
  namespace fs = std::filesystem;
  std::error_code unknown;
  const auto open = static_cast<rlim_t>(
      std::distance(fs::directory_iterator("/proc/self/fd", unknown), fs::directory_iterator()));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      open + kNeeded > limit.rlim_cur)
    throw ConfigError(
        fmt::format("{} of at most {} files are open, and sockets need up to {} more; raise the "
                    "limit (ulimit -n 1024)",
                    open, limit.rlim_cur, kNeeded));
  return {};
}

zmq::socket_t consumer_socket(zmq::context_t& context, const std::string& endpoint,
                              const std::optional<LinkKeys>& keys, std::int64_t most_bytes) {
  constexpr int kReconnectMs = 100, kMostReconnectMs = 2000;
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
  socket.set(zmq::sockopt::immediate, true);  // no message is queued for a server that is gone
  socket.set(zmq::sockopt::maxmsgsize, most_bytes);
  socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
  socket.set(zmq::sockopt::reconnect_ivl_max, kMostReconnectMs);
  if (keys) {
    socket.set(zmq::sockopt::curve_serverkey, keys->server);
    socket.set(zmq::sockopt::curve_publickey, keys->own.public_key);
    socket.set(zmq::sockopt::curve_secretkey, keys->own.secret_key);
  }
  return socket;
}

SocketEvents::SocketEvents(zmq::context_t& context, zmq::socket_t& socket, int wanted)
    : watched_(socket), pair_(context, zmq::socket_type::pair) {
  static std::atomic<std::uint64_t> count = 0;
  const auto address = "inproc://events-" + std::to_string(count++);
  if (zmq_socket_monitor(socket.handle(), address.c_str(), wanted) != 0) throw zmq::error_t();
  pair_.set(zmq::sockopt::linger, 0);
  pair_.connect(address);
}

// Otherwise libzmq's threads might wait forever to deliver an event.
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
