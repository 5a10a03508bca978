// System calls that may be interrupted by a signal, as on network file systems.
#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace millrace {

/// Repeats a system call while it fails with EINTR and returns its result. The call must return a
/// negative value and set errno on failure. Async-signal-safe.
template <class Call>
auto repeated(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Renames a file or folder. Returns the system's error, empty on success.
inline std::error_code rename_path(const std::filesystem::path& from,
                                   const std::filesystem::path& to) {
  if (repeated([&] { return std::rename(from.c_str(), to.c_str()); }) == 0) return {};
  return {errno, std::generic_category()};
}

}  // namespace millrace
