#include "millrace/dataflow/serving/this_host.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace millrace::serving {

bool is_local(std::string_view endpoint) {
  for (const auto* local : {"ipc://", "tcp://127.", "tcp://localhost:", "tcp://[::1]:"})
    if (endpoint.starts_with(local)) return true;
  return false;
}

void send_unpaced(std::int32_t connection) {
  constexpr std::string_view kUnpaced = "reno";  // which every Linux has
  // Where it is no TCP, or has gone, there is nothing to be done.
  static_cast<void>(::setsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(),
                                 static_cast<socklen_t>(kUnpaced.size())));
}

}  // namespace millrace::serving
