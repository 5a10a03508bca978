// Which process it is, among those of all machines that share a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

struct ProcessIdentity {
  std::string system;       // a host until it boots again, or a container on it
  std::int64_t number = 0;  // the system gives the number of an ended process to others
  std::int64_t start = 0;   // clock ticks since the boot; 0: unknown
};

/// Identifies this process.
ProcessIdentity own_identity();

/// Whether the process has not ended. nullopt if it belongs to another system, or if this one hides
/// it.
std::optional<bool> is_running(const ProcessIdentity& process);

}  // namespace millrace
