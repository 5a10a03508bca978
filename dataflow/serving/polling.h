// libzmq contexts and sockets, and other objects polled by the threads of data servers and
// consumers.
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

/// Returns a new context. Throws ConfigError if the process is close to its limit of open files,
/// since libzmq would abort.
zmq::context_t new_context();

/// Returns a consumer's socket for one server, not yet connected. A message longer than
/// `most_bytes` closes the connection.
zmq::socket_t consumer_socket(zmq::context_t& context, const std::string& endpoint,
                              const std::optional<LinkKeys>& keys, std::int64_t most_bytes);

/// The events of a socket's connections. Used by the socket's thread; destroyed before the socket.
class SocketEvents {
 public:
  /// `wanted` holds ZMQ_EVENT_... flags.
  SocketEvents(zmq::context_t& context, zmq::socket_t& socket, int wanted);
  ~SocketEvents();

  struct Event {
    int what = 0;            // one ZMQ_EVENT_... flag
    std::int32_t value = 0;  // a descriptor or an error number, depending on the event
  };
  /// Returns the next event; nullopt if there is none.
  std::optional<Event> take();

  /// Socket to poll.
  zmq::socket_ref socket() { return pair_; }

 private:
  zmq::socket_ref watched_;
  zmq::socket_t pair_;
};

/// Wakes a polling thread.
class WakeUpCall {
 public:
  WakeUpCall() {
    if (!fd_) throw std::runtime_error("cannot create an eventfd");
  }

  /// Thread-safe.
  void ring() const { ::eventfd_write(fd_.get(), 1); }
  /// Clears the signal; returns true if it was set since the last call.
  bool answer() const {
    eventfd_t rings = 0;
    return ::eventfd_read(fd_.get(), &rings) == 0;
  }
  /// Descriptor that is readable while the signal is set.
  int descriptor() const { return fd_.get(); }

 private:
  const UniqueFd fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

}  // namespace millrace::serving
