// Runs what others wrote in Python, to compare with: by MILLRACE_PEERS_PYTHON, else python3.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace millrace::testing {

inline std::string python() {
  const char* named = std::getenv("MILLRACE_PEERS_PYTHON");
  return named ? named : "python3";
}

/// Its exit status; arguments are quoted by the caller where they need it.
inline int run_python(const std::string& arguments) {
  return std::system((python() + " " + arguments).c_str());
}

}  // namespace millrace::testing

/// Skips the test, saying why, where Python lacks a module.
#define MILLRACE_NEEDS_PYTHON(module)                                           \
  if (millrace::testing::run_python("-c 'import " module "' 2>/dev/null") != 0) \
  GTEST_SKIP() << "no " module " in " << millrace::testing::python()            \
               << " (set MILLRACE_PEERS_PYTHON to a Python that has it)"
