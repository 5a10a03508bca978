// The listening socket of a data server, with client authentication and a count of rejected
// clients.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <zmq.hpp>

#include "millrace/dataflow/serving/keys.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/serving/polling.h"

namespace millrace::serving {

/// Returns true if no other machine can reach an endpoint.
bool is_local(std::string_view endpoint);

struct ListenOptions {
  std::string bind = "tcp://127.0.0.1:5555";
  std::optional<KeyPair> keys;    // nullopt = every process may connect, without encryption
  std::set<std::string> allowed;  // public keys of consumers
};

/// The file of an ipc:// endpoint, removed by the destructor: libzmq replaces an existing file and
/// does not remove its own.
class SocketFile {
 public:
  /// Must be constructed before the endpoint is bound. Throws ConfigError if the file is not a
  /// socket, or another server listens there. Ignores other endpoints.
  explicit SocketFile(const std::string& endpoint);
  /// Records the file's identity; must be called after binding.
  void note();
  /// Removes the file, unless it now belongs to another server.
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;

 private:
  std::filesystem::path file_;  // empty = none
  dev_t device_ = 0;
  ino_t inode_ = 0;  // 0 = not recorded
};

/// A data server's listening socket. Owned and used by one thread.
class ServerSocket {
 public:
  /// Starts to listen. Throws ConfigError for an invalid endpoint, Error if listening fails.
  ServerSocket(zmq::context_t& context, const ListenOptions& options);

  /// Returns the ROUTER socket.
  zmq::socket_t& socket() { return socket_; }
  /// Returns the endpoint, with the port that the system chose for `*`.
  std::string endpoint() const { return socket_.get(zmq::sockopt::last_endpoint); }

  /// Waits for a message, a connection event, or `wake` to become readable, up to `most`.
  void wait(int wake, std::chrono::milliseconds most);
  /// Answers authentication requests, and calls `gone` for connections that have closed.
  void handle_events(const std::function<void(std::int32_t connection)>& gone);

  /// Receives a message with the routing id of its sender and the descriptor of its connection.
  using OnMessage =
      std::function<void(const std::string& from, std::int32_t connection, const Message& message)>;
  /// Receives one message; returns false if none is waiting. Rejects a message that is invalid or
  /// for which `on_message` throws DataError.
  bool receive(const OnMessage& on_message);
  /// Sends a message; returns false if the peer is no longer connected.
  bool send(const std::string& to, Message message, zmq::send_flags flags = zmq::send_flags::none);
  /// Rejects a sender: counts it, logs the reason, and sends the refusal.
  void reject(const std::string& id, const char* reason, const std::string& name, Refusal refusal);

  /// Counts a rejected consumer or message, and logs the first for each reason.
  void refuse(const std::string& reason, const std::string& detail);
  /// Returns e.g. "3 with a key that is not allowed, 12 that do not speak ZeroMQ"; empty if there
  /// was none since the last call.
  std::string take_refusals();

 private:
  void check_keys();

  ListenOptions options_;
  SocketFile file_;
  zmq::socket_t key_requests_;  // requests of libzmq by ZAP
  zmq::socket_t socket_;
  SocketEvents events_;
  std::map<std::string, std::int64_t> refused_;
  bool refused_more_ = false;
};

}  // namespace millrace::serving
