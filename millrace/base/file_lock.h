// A file or folder that one process at a time works on.
#pragma once

#include <filesystem>

namespace millrace {

/// Holds the lock of a file, made where it is missing, or of a folder. The system lets go of it when the process dies.
class FileLock {
 public:
  /// Throws Error where another process holds it, or it cannot be locked.
  explicit FileLock(const std::filesystem::path& path);
  FileLock(const FileLock&) = delete;
  ~FileLock();

  int descriptor() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace millrace
