// What happens to a socket's connections, as libzmq's monitor tells it.
#pragma once

#include <cstdint>
#include <optional>
#include <zmq.hpp>

namespace millrace::serving {

/// One thread, the socket's own. Goes before the socket.
class SocketEvents {
 public:
  /// `wanted`: ZMQ_EVENT_... flags.
  SocketEvents(zmq::context_t& context, zmq::socket_t& socket, int wanted);
  ~SocketEvents();

  struct Event {
    int what = 0;            // one ZMQ_EVENT_... flag
    std::int32_t value = 0;  // a descriptor or an error, as the event has it
  };
  /// The next; nothing where none has come. Does not wait.
  std::optional<Event> take();

  /// To poll on.
  zmq::socket_ref socket() { return pair_; }

 private:
  zmq::socket_ref watched_;
  zmq::socket_t pair_;
};

}  // namespace millrace::serving
