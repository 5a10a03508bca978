// Programs of the machine that tests check against.
#pragma once

#include <cstdlib>
#include <string>

namespace millrace::testing {

/// Runs a line of shell, silently; whether it ends well.
inline bool shell(const std::string& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace millrace::testing
