// Files that are complete or absent, and errors that say which file and why.
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

/// A file descriptor that closes itself.
class UniqueFd {
 public:
  UniqueFd() = default;
  /// Owns `fd`; a negative one, as a system call returns it with errno, means none.
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

/// A file open for reading. Thread-safe.
class InputFile {
 public:
  /// Throws Error naming the file and the system's reason, also for a device or pipe.
  explicit InputFile(std::filesystem::path file);

  /// When the file was opened.
  std::uint64_t size() const { return size_; }

  /// Fills `out` with the bytes from `offset` on. Throws Error if they cannot be read or the file
  /// ends before.
  void read(std::uint64_t offset, std::span<char> out) const;

 private:
  std::filesystem::path file_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

/// The bytes of a mapped file, shared by their holders.
struct SharedBytes {
  std::shared_ptr<const std::byte> data;  // begins with a page
  std::size_t size = 0;
};

/// Maps a file. Throws Error naming the file and the system's reason. For files that are replaced,
/// never changed in place: reading past the end of a truncated one kills the process.
SharedBytes map_file(const std::filesystem::path& file);
/// The same of an open file of `size` bytes; `what` follows the name in the message.
SharedBytes map_file(const UniqueFd& fd, std::size_t size, const std::filesystem::path& name,
                     std::string_view what);

/// What becomes of a pipe in a file's place.
enum class Pipes {
  refused,
  taken,    // an Error if no process opens it for writing within ten seconds
  awaited,  // its writer is waited for
};

struct Reading {
  std::uint64_t most = UINT64_MAX;  // bytes; a longer file is an Error
  std::size_t spare = 0;            // bytes of capacity after the last byte
  /// Gets the first bytes before the rest is read, and may refuse the file by throwing.
  std::function<void(std::string_view)> look;
  Pipes pipes = Pipes::refused;
};

/// The bytes of a file. Throws Error naming the file and the system's reason, also for a device,
/// which may have no end.
std::string read_file(const std::filesystem::path& file, const Reading& wanted = {});

/// Writes beside the file, syncs and renames: a reader sees the old bytes or the new. Follows
/// symbolic links. Writes to a device or pipe directly. Throws Error naming the file and the
/// system's reason, and leaves nothing beside it then.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);
/// The same with parts, one after the other.
void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::string_view> parts);

/// The same without waiting for the disk: for what can be checked and made again. Any number of
/// processes may do so at once; a reader sees one of their files (after a power failure perhaps
/// half of one).
void replace_file(const std::filesystem::path& file, std::span<const std::string_view> parts);

/// Writes all bytes to a descriptor. Throws Error naming `file` and the system's reason.
void write_all(const UniqueFd& fd, std::string_view bytes, const std::filesystem::path& file);

/// Flushes a file or folder to the disk. Throws Error.
void sync_path(const std::filesystem::path& path);
/// Flushes the whole file system of `path`: cheaper for many files. Throws Error.
void sync_file_system(const std::filesystem::path& path);

/// Makes a folder and its parents. Throws Error saying why it cannot be made or written to.
void make_writable_folder(const std::filesystem::path& folder);

/// Holds the lock of a folder, or of a file, which it makes if missing. It ends with the process.
class FileLock {
 public:
  /// Throws Error if another process holds it, or it cannot be locked.
  explicit FileLock(const std::filesystem::path& path);

 private:
  UniqueFd fd_;
};

}  // namespace millrace
