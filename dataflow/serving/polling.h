// libzmq's contexts and sockets, and what the threads of data servers and consumers poll besides.
#pragma once

#include <sys/eventfd.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <zmq.hpp>

#include "millrace/base/files.h"
#include "millrace/dataflow/serving/keys.h"

namespace millrace::serving {

/// A new context. Throws ConfigError if this process may open too few further files: libzmq would
/// abort.
zmq::context_t new_context();

/// A consumer's socket for one server, not connected yet. A message of more bytes ends the
/// connection.
zmq::socket_t consumer_socket(zmq::context_t& context, const std::string& endpoint,
                              const std::optional<LinkKeys>& keys, std::int64_t most_bytes);

/// Events of a socket's connections. Used by the socket's thread; destroyed before the socket.
class SocketEvents {
 public:
  /// `wanted`: ZMQ_EVENT_... flags.
  SocketEvents(zmq::context_t& context, zmq::socket_t& socket, int wanted);
  ~SocketEvents();

  struct Event {
    int what = 0;            // one ZMQ_EVENT_... flag
    std::int32_t value = 0;  // a descriptor or an error, as the event has it
  };
  /// The next event; nullopt if none has occurred.
  std::optional<Event> take();

  /// To poll on.
  zmq::socket_ref socket() { return pair_; }

 private:
  zmq::socket_ref watched_;
  zmq::socket_t pair_;
};

/// Wakes a thread that polls.
class WakeUpCall {
 public:
  WakeUpCall() {
    if (!fd_) throw std::runtime_error("no eventfd is to be had");
  }

  /// Any thread.
  void ring() const { ::eventfd_write(fd_.get(), 1); }
  /// Whether it has rung since the last call.
  bool answer() const {
    eventfd_t rings = 0;
    return ::eventfd_read(fd_.get(), &rings) == 0;
  }
  /// Readable once it has rung.
  int descriptor() const { return fd_.get(); }

 private:
  const UniqueFd fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

}  // namespace millrace::serving
