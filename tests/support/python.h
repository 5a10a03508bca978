// Runs Python (MILLRACE_PEERS_PYTHON, else python3) for comparisons with other libraries.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace millrace::testing {

inline std::string python() {
  const char* named = std::getenv("MILLRACE_PEERS_PYTHON");
  return named ? named : "python3";
}

/// Runs Python and returns the status of std::system(). The caller quotes the arguments for the
/// shell.
inline int run_python(const std::string& arguments) {
  return std::system((python() + " " + arguments).c_str());
}

}  // namespace millrace::testing

/// Skips the test with a message if Python lacks the module.
#define MILLRACE_NEEDS_PYTHON(module)                                           \
  if (millrace::testing::run_python("-c 'import " module "' 2>/dev/null") != 0) \
  GTEST_SKIP() << module " not found in " << millrace::testing::python()        \
               << " (set MILLRACE_PEERS_PYTHON to a Python that has it)"
