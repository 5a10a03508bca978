// Files that are whole or absent, and errors that say which file and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "millrace/base/unique_fd.h"

namespace millrace {

/// A file that is open for reading. Any thread may read.
class InputFile {
 public:
  /// Throws Error naming the file and the system's reason.
  explicit InputFile(std::filesystem::path file);

  /// As it was when the file was opened.
  std::uint64_t size() const { return size_; }

  /// Fills `out` with the bytes from `offset` on. Throws Error where they cannot be read or the
  /// file ends before.
  void read(std::uint64_t offset, std::span<char> out) const;

 private:
  std::filesystem::path file_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

/// The bytes of a mapped file, there as long as somebody holds them.
struct SharedBytes {
  std::shared_ptr<const std::byte> data;  // begins with a page
  std::size_t size = 0;
};

/// A file as memory. Throws Error naming the file and the system's reason. For files that are
/// replaced and never changed in place: to read past the end of one that was cut short ends the
/// process.
SharedBytes map_file(const std::filesystem::path& file);

/// What a caller of `read_file` wants beside the bytes.
struct Reading {
  std::uint64_t most = UINT64_MAX;  // bytes; a longer file is an Error
  std::size_t spare = 0;            // bytes of capacity after the last byte
  /// Sees the first bytes before the rest is read, so that it can refuse what is of another kind
  /// (by throwing).
  std::function<void(std::string_view)> look;
};

/// The bytes of a file or of what comes through a pipe. Throws Error naming the file and the
/// system's reason; what has no end by itself (a device) is refused.
std::string read_file(const std::filesystem::path& file, const Reading& wanted = {});

/// Writes beside the file, syncs and renames: a reader sees the old bytes or the new, never half.
/// Of a symbolic link the target is replaced so. What exists and is no regular file (a device, a
/// pipe) is written to as it is. Throws Error naming the file and the system's reason, and leaves
/// nothing beside it then.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);
/// The same with parts, one after the other.
void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::string_view> parts);

/// Writes the parts, one after the other, beside the file and renames, without waiting for the
/// disk: for what can be checked and made again. Links, devices and pipes are treated as above. Any
/// number of processes may do so at once; a reader sees one whole file of theirs (after a loss of
/// power perhaps half a file). Throws Error naming the file and the system's reason.
void replace_file(const std::filesystem::path& file, std::span<const std::string_view> parts);

/// Writes all bytes to a descriptor. Throws Error naming `file` and the system's reason.
void write_all(const UniqueFd& fd, std::string_view bytes, const std::filesystem::path& file);

/// Flushes a file or folder to the disk. Throws Error.
void sync_path(const std::filesystem::path& path);
/// Flushes all of the file system that `path` lies on: cheaper than one by one for many files.
/// Throws Error.
void sync_file_system(const std::filesystem::path& path);

/// Makes a folder (and its parents). Throws Error saying why it cannot be made or written to.
void make_writable_folder(const std::filesystem::path& folder);

}  // namespace millrace
