// The listening socket of a data server: which clients may connect, and which were rejected.
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

/// Whether no other machine can reach an endpoint.
bool is_local(std::string_view endpoint);

struct DoorOptions {
  std::string bind = "tcp://127.0.0.1:5555";
  std::optional<KeyPair> keys;    // nullopt: every process may connect, without encryption
  std::set<std::string> allowed;  // public keys of consumers
};

/// The file of an ipc:// endpoint, removed with this object: libzmq replaces an existing file and
/// does not remove its own.
class SocketFile {
 public:
  /// To be made before the endpoint is bound. Throws ConfigError if the file is not a socket, or
  /// another server listens at it. Ignores other endpoints.
  explicit SocketFile(const std::string& endpoint);
  /// To be called once it is bound.
  void note();
  /// Keeps a file that is no longer this server's.
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;

 private:
  std::filesystem::path file_;  // empty: none
  dev_t device_ = 0;
  ino_t inode_ = 0;  // 0: not noted
};

/// Owned and used by one thread.
class Door {
 public:
  /// Listens. Throws ConfigError for a bad endpoint, Error if it cannot be listened at.
  Door(zmq::context_t& context, const DoorOptions& options);

  /// A ROUTER socket.
  zmq::socket_t& socket() { return socket_; }
  /// Where it listens, with the port that the system chose for `*`.
  std::string endpoint() const { return socket_.get(zmq::sockopt::last_endpoint); }

  /// Waits for a message, an event of a connection, or `wake` to become readable; at most `most`.
  void wait(int wake, std::chrono::milliseconds most);
  /// Answers requests to connect, and calls `gone` for connections that have closed.
  void look(const std::function<void(std::int32_t connection)>& gone);

  /// Gets a message with the routing id of its sender and the descriptor of its connection.
  using Hear =
      std::function<void(const std::string& from, std::int32_t connection, const Message& message)>;
  /// Takes one message. Returns whether there was one. Refuses one that cannot be read, or for
  /// which `hear` throws DataError.
  bool receive(const Hear& hear);
  /// Returns whether the other end is still connected.
  bool send(const std::string& to, Message message, zmq::send_flags flags = zmq::send_flags::none);
  /// Refuses a sender: counts it, logs why, and sends the refusal.
  void turn_away(const std::string& id, const char* reason, const std::string& name,
                 Refusal refusal);

  /// Counts a refused consumer or message, and logs the first of each reason.
  void refuse(const std::string& reason, const std::string& detail);
  /// "3 with a key that is not allowed, 12 that do not speak ZeroMQ"; empty if there is none since
  /// the last call.
  std::string take_refusals();

 private:
  void check_keys();

  DoorOptions options_;
  SocketFile file_;
  zmq::socket_t key_requests_;  // of libzmq, by ZAP
  zmq::socket_t socket_;
  SocketEvents events_;
  std::map<std::string, std::int64_t> refused_;
  bool refused_more_ = false;
};

}  // namespace millrace::serving
