#include "millrace/dataflow/serving/server_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <vector>
#include <zmq_addon.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"

namespace millrace::serving {
namespace {

constexpr std::int64_t kMostRequestBytes = 4 << 20;  // maximum size of a consumer's message
constexpr int kMostWaiting = 64;                     // unread messages of one consumer
constexpr int kHeartbeatMs = 2000, kHeartbeatTimeoutMs = 10000, kHandshakeMs = 5000;

/// Replaces a host name by an address, since libzmq binds to addresses and interfaces only.
std::string with_address(std::string endpoint) {
  constexpr std::string_view kName = "tcp://localhost:";
  if (endpoint.starts_with(kName)) endpoint.replace(0, kName.size(), "tcp://127.0.0.1:");
  return endpoint;
}

bool is_listened_at(const std::string& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (file.size() >= sizeof(address.sun_path)) return false;  // libzmq reports it
  file.copy(address.sun_path, file.size());
  const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return client &&
         ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

zmq::socket_t listen(zmq::context_t& context, const ListenOptions& options) {
  const auto& endpoint = options.bind;
  if (!endpoint.starts_with("tcp://") && !endpoint.starts_with("ipc://"))
    throw ConfigError(fmt::format(
        "'{}' is not an endpoint; expected tcp://ADDRESS:PORT or ipc://FILE", endpoint));
  zmq::socket_t socket(context, zmq::socket_type::router);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
  socket.set(zmq::sockopt::router_mandatory, true);
  socket.set(zmq::sockopt::maxmsgsize, kMostRequestBytes);
  socket.set(zmq::sockopt::rcvhwm, kMostWaiting);
  socket.set(zmq::sockopt::sndhwm, 0);  // bounded by the credit of consumers
  socket.set(zmq::sockopt::heartbeat_ivl, kHeartbeatMs);
  socket.set(zmq::sockopt::heartbeat_timeout, kHeartbeatTimeoutMs);
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  if (options.keys) {
    socket.set(zmq::sockopt::curve_server, true);
    socket.set(zmq::sockopt::curve_secretkey, options.keys->secret_key);
    socket.set(zmq::sockopt::zap_domain, "millrace");
  }
  return socket;
}

using Frames = std::vector<zmq::message_t>;

/// Receives the next message; returns false if none has arrived.
bool receive_frames(zmq::socket_t& socket, Frames& frames) {
  frames.clear();
  return zmq::recv_multipart(socket, std::back_inserter(frames), zmq::recv_flags::dontwait)
      .has_value();
}

zmq::socket_t answer_key_requests(zmq::context_t& context) {
  zmq::socket_t socket(context, zmq::socket_type::rep);
  socket.set(zmq::sockopt::linger, 0);
  socket.bind("inproc://zeromq.zap.01");
  return socket;
}

}  // namespace

bool is_local(std::string_view endpoint) {
  for (const auto* local : {"ipc://", "tcp://127.", "tcp://localhost:", "tcp://[::1]:"})
    if (endpoint.starts_with(local)) return true;
  return false;
}

SocketFile::SocketFile(const std::string& endpoint) {
  constexpr std::string_view kScheme = "ipc://";
  if (!endpoint.starts_with(kScheme)) return;
  const auto name = endpoint.substr(kScheme.size());
  if (name.empty() || name == "*" || name.front() == '@')
    return;  // '@' = abstract name without a
             // file
  file_ = name;
  struct stat there {};
  if (::lstat(file_.c_str(), &there) != 0) return;
  if (!S_ISSOCK(there.st_mode))
    throw ConfigError(
        fmt::format("cannot listen at {}: {} already exists and is not a socket; name another file",
                    endpoint, name));
  if (is_listened_at(name))
    throw ConfigError(
        fmt::format("cannot listen at {}: another server uses it; name another file", endpoint));
}

void SocketFile::note() {
  struct stat made {};
  if (file_.empty() || ::lstat(file_.c_str(), &made) != 0) return;
  device_ = made.st_dev;
  inode_ = made.st_ino;
}

SocketFile::~SocketFile() {
  struct stat there {};
  if (inode_ != 0 && ::lstat(file_.c_str(), &there) == 0 && there.st_ino == inode_ &&
      there.st_dev == device_)
    ::unlink(file_.c_str());
}

ServerSocket::ServerSocket(zmq::context_t& context, const ListenOptions& options)
    : options_(options),
      file_(options.bind),
      key_requests_(answer_key_requests(context)),
      socket_(listen(context, options)),
      events_(context, socket_,
              ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_ACCEPT_FAILED |
                  ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
  try {
    socket_.bind(with_address(options.bind));
    file_.note();
  } catch (const zmq::error_t& problem) {
    throw Error(fmt::format("cannot listen at {}: {}", options.bind, problem.what()));
  }
}

void ServerSocket::wait(int wake, std::chrono::milliseconds most) {
  std::array<zmq::pollitem_t, 4> items = {{{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                           {key_requests_.handle(), 0, ZMQ_POLLIN, 0},
                                           {events_.socket().handle(), 0, ZMQ_POLLIN, 0},
                                           {nullptr, wake, ZMQ_POLLIN, 0}}};
  zmq_poll(items.data(), static_cast<int>(items.size()), static_cast<long>(most.count()));
}

void ServerSocket::handle_events(const std::function<void(std::int32_t)>& gone) {
  check_keys();
  while (const auto event = events_.take()) {
    if (event->what == ZMQ_EVENT_DISCONNECTED)
      gone(event->value);
    else if (event->what == ZMQ_EVENT_ACCEPT_FAILED)
      refuse("out of file descriptors", zmq_strerror(event->value));
    else
      refuse("not ZeroMQ or no matching keys",
             options_.keys ? "the handshake failed: another protocol, or another server's key"
                           : "the handshake failed: another protocol, or a client with keys");
  }
}

// ZAP 1.0 (rfc.zeromq.org/spec/27): libzmq asks whether an authenticated key may connect.
void ServerSocket::check_keys() {
  for (Frames parts; receive_frames(key_requests_, parts);) {
    const auto text = [&](std::size_t k) { return k < parts.size() ? parts[k].to_string() : ""; };
    std::array<char, 41> key{};
    const bool is_key = parts.size() == 7 && text(5) == "CURVE" && parts[6].size() == 32 &&
                        zmq_z85_encode(key.data(), parts[6].data<std::uint8_t>(), 32);
    const bool is_allowed = is_key && options_.allowed.contains(key.data());
    if (!is_allowed)
      refuse("key not allowed",
             fmt::format("{} has the key {}", parts.size() > 3 ? text(3) : "unknown peer",
                         is_key ? key.data() : "of another kind"));
    const auto id = text(1);
    const std::string_view status = is_allowed ? "200" : "400",
                           why = is_allowed ? "OK" : "this key is not allowed";
    zmq::send_multipart(key_requests_,
                        std::array{zmq::str_buffer("1.0"), zmq::buffer(id), zmq::buffer(status),
                                   zmq::buffer(why), zmq::const_buffer(), zmq::const_buffer()});
  }
}

bool ServerSocket::receive(const OnMessage& on_message) {
  Frames frames;
  if (!receive_frames(socket_, frames)) return false;
  if (frames.size() < 2) return true;
  const auto from = frames[0].to_string();
  auto& body = frames[1];
  try {
    if (frames.size() > 2) throw DataError("message", "has more than one frame");
    on_message(from, body.get(ZMQ_SRCFD), decode(body.to_string_view(), "message"));
  } catch (const DamagedMessage& problem) {  // the consumer may send hello again
    reject(from, "damaged message", "unknown peer", {problem.what()});
  } catch (const DataError& problem) {
    reject(from, "invalid message", "unknown peer", {problem.what(), true});
  }
  return true;
}

bool ServerSocket::send(const std::string& to, Message message, zmq::send_flags flags) {
  try {
    socket_.send(zmq::buffer(to), zmq::send_flags::sndmore);
  } catch (const zmq::error_t& problem) {
    if (problem.num() != EHOSTUNREACH) throw;
    return false;
  }
  socket_.send(zmq::buffer(encode(std::move(message))), flags);
  return true;
}

void ServerSocket::reject(const std::string& id, const char* reason, const std::string& name,
                          Refusal refusal) {
  refuse(reason, fmt::format("{}: {}", name, refusal.why));
  send(id, std::move(refusal));
}

void ServerSocket::refuse(const std::string& reason, const std::string& detail) {
  if (refused_[reason]++ == 0) log_warning("refused ({}): {}", reason, detail);
  refused_more_ = true;
}

std::string ServerSocket::take_refusals() {
  if (!refused_more_) return {};
  refused_more_ = false;
  std::vector<std::string> all;
  for (const auto& [reason, count] : refused_) all.push_back(fmt::format("{} ({})", count, reason));
  return joined(all);
}

}  // namespace millrace::serving
