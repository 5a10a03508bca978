// System calls that a signal interrupts, as on network file systems.
#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace millrace {

/// The result of a system call, which is negative and sets errno if it fails; repeats the call
/// while that is EINTR. Signal handlers may use it.
template <class Call>
auto repeated(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Renames a file or folder. Returns the system's reason if it cannot.
inline std::error_code rename_path(const std::filesystem::path& from,
                                   const std::filesystem::path& to) {
  if (repeated([&] { return std::rename(from.c_str(), to.c_str()); }) == 0) return {};
  return {errno, std::generic_category()};
}

}  // namespace millrace
