// libzmq's contexts.
#pragma once

#include <zmq.hpp>

namespace millrace::serving {

/// A new context. Throws ConfigError if this process may open too few further files: libzmq would
/// abort.
zmq::context_t new_context();

}  // namespace millrace::serving
