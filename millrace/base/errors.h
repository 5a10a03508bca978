// The errors that a person gets to read. Each says what was wrong, where, and what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace {

/// Anything that ends a command: its message is complete and goes to the user as it is (exit code
/// 1).
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Wrong usage or configuration: nothing has run yet (exit code 2).
struct ConfigError : Error {
  using Error::Error;
};

/// One input that cannot be used. A flow may skip it and count it; any other exception ends the
/// flow.
struct DataError : Error {
  DataError(std::string_view file, std::string_view why)
      : Error(std::string(file) + ": " + std::string(why)) {}
  explicit DataError(const std::string& what) : Error(what) {}
};

}  // namespace millrace
