// Where a data server listens: who may come in, who came, who left, who was turned away.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <zmq.hpp>

#include "millrace/dataflow/serving/keys.h"
#include "millrace/dataflow/serving/socket_events.h"
#include "millrace/dataflow/serving/socket_file.h"

namespace millrace::serving {

struct DoorOptions {
  std::string bind = "tcp://127.0.0.1:5555";
  std::optional<KeyPair> keys;    // none: anyone may come in, and nothing is encrypted
  std::set<std::string> allowed;  // public keys of consumers
};

/// Owned and used by one thread.
class Door {
 public:
  /// Listens. Throws ConfigError for an endpoint that cannot be, Error where it cannot be listened
  /// at.
  Door(zmq::context_t& context, const DoorOptions& options);

  /// A ROUTER socket. A message's connection is its ZMQ_SRCFD.
  zmq::socket_t& socket() { return socket_; }
  /// Where it listens, with the port that the system chose for `*`.
  std::string endpoint() const { return socket_.get(zmq::sockopt::last_endpoint); }

  /// Waits until something can be received, something happens to a connection, or `wake` can be
  /// read; so long at most.
  void wait(int wake, std::chrono::milliseconds most);
  /// Lets in or turns away who knocks, and tells of connections that have gone.
  void look(const std::function<void(std::int32_t connection)>& gone);

  /// A consumer is turned away, or something that it said: counted, told at once the first time.
  void refuse(const std::string& reason, const std::string& detail);
  /// "3 with a key that is not allowed, 12 that do not speak ZeroMQ"; empty where there was none
  /// since the last call.
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
