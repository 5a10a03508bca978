// Connections that do not leave this host.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace::serving {

/// Whether an endpoint is one that no other machine can reach.
bool is_local(std::string_view endpoint);

/// Sends on a TCP connection as fast as the other end takes: where no network has to be shared,
/// congestion control that paces (BBR) would only wait.
void send_unpaced(std::int32_t connection);

}  // namespace millrace::serving
