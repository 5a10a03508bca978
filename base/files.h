// Atomic file writing, and errors that name the file and the reason.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {

/// A file descriptor that is closed on destruction.
class UniqueFd {
 public:
  UniqueFd() = default;
  /// Takes ownership of `fd`; negative = none (the result of a failed system call).
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

/// A file opened for reading. Thread-safe.
class InputFile {
 public:
  /// Throws Error naming the file and the system's reason, also for a device or pipe.
  explicit InputFile(std::filesystem::path file);

  /// Size in bytes when the file was opened.
  std::uint64_t size() const { return size_; }

  /// Fills `out` with the bytes from `offset` on. Throws Error if they cannot be read or the file
  /// is too short.
  void read(std::uint64_t offset, std::span<char> out) const;

 private:
  std::filesystem::path file_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

/// The bytes of a mapped file, with shared ownership.
struct SharedBytes {
  std::shared_ptr<const std::byte> data;  // page-aligned
  std::size_t size = 0;
};

/// Maps a file. Throws Error naming the file and the system's reason. The file must never be
/// changed in place, only replaced: reading past the end of a truncated file kills the process.
SharedBytes map_file(const std::filesystem::path& file);
/// Maps an open file of `size` bytes. `what` follows the name in the error message.
SharedBytes map_file(const UniqueFd& fd, std::size_t size, const std::filesystem::path& name,
                     std::string_view what);

/// Treatment of a pipe in place of a file.
enum class Pipes {
  refused,
  taken,    // Error if no process opens it for writing within ten seconds
  awaited,  // waits for a writer without a limit
};

struct Reading {
  std::uint64_t max_bytes = UINT64_MAX;  // a longer file is an Error
  std::size_t spare = 0;                 // bytes of capacity reserved after the last byte
  /// Receives the first bytes before the rest is read; may throw to refuse the file.
  std::function<void(std::string_view)> check_head;
  Pipes pipes = Pipes::refused;
};

/// Returns the bytes of a file. Throws Error naming the file and the system's reason, also for a
/// device, which may have no end.
std::string read_file(const std::filesystem::path& file, const Reading& wanted = {});

/// Writes a temporary file in the same folder, syncs it and renames it, so that a reader sees
/// either the old or the new bytes. Follows symbolic links. Writes to a device or pipe directly. On
/// failure removes the temporary file and throws Error naming the file and the system's reason.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);
/// Writes the concatenated `parts` atomically, as above.
void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::string_view> parts);

/// Replaces a file atomically but without syncing, for contents that can be verified and recreated.
/// Any number of processes may do so concurrently; a reader sees one of their files (after a power
/// failure possibly half of one).
void replace_file(const std::filesystem::path& file, std::span<const std::string_view> parts);

/// Writes all bytes to a descriptor. Throws Error naming `file` and the system's reason.
void write_all(const UniqueFd& fd, std::string_view bytes, const std::filesystem::path& file);

/// Flushes a file or folder to the disk. Throws Error.
void sync_path(const std::filesystem::path& path);
/// Flushes the whole file system that contains `path`, which is cheaper for many files. Throws
/// Error.
void sync_file_system(const std::filesystem::path& path);

/// Creates a folder and its parents. Throws Error with the reason if it cannot be created or is not
/// writable.
void make_writable_folder(const std::filesystem::path& folder);

/// Holds an exclusive lock on a folder, or on a file, which is created if missing. The lock is
/// released when the process ends.
class FileLock {
 public:
  /// Throws Error if another process holds the lock, or if the path cannot be locked.
  explicit FileLock(const std::filesystem::path& path);

 private:
  UniqueFd fd_;
};

}  // namespace millrace
