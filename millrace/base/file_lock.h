// A file or folder that one process at a time works on.
#pragma once

#include <filesystem>

#include "millrace/base/unique_fd.h"

namespace millrace {

/// Holds the lock of a file, made where it is missing, or of a folder. The system lets go of it
/// when the process dies.
class FileLock {
 public:
  /// Throws Error where another process holds it, or it cannot be locked.
  explicit FileLock(const std::filesystem::path& path);

 private:
  UniqueFd fd_;
};

}  // namespace millrace
