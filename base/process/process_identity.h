// The identity of a process among those of all machines that share a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

struct ProcessIdentity {
  std::string system;       // a host until its next reboot, or a container on it
  std::int64_t number = 0;  // process id, which the system may reuse
  std::int64_t start = 0;   // clock ticks since boot; 0 = unknown
};

/// Returns the identity of this process.
ProcessIdentity own_identity();

/// Returns whether the process is still running; nullopt if it belongs to another system or is
/// hidden by this one.
std::optional<bool> is_running(const ProcessIdentity& process);

}  // namespace millrace
