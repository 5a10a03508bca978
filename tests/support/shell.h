// Runs programs that are installed on the machine.
#pragma once

#include <cstdlib>
#include <string>

namespace millrace::testing {

/// Runs a shell command without output; returns true if it exits with 0.
inline bool shell(const std::string& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace millrace::testing
