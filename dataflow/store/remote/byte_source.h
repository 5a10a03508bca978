// Files read by ranges, wherever they lie: below what knows a file's format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

/// Bytes, and what keeps them in memory.
struct HeldBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

/// Bytes `begin` .. `begin + size` of a file.
struct ByteRange {
  std::uint64_t begin = 0, size = 0;
  /// Whether these are the bytes that were written; empty: not known. Any thread.
  std::function<bool(std::string_view)> valid = {};
  /// Whether a cache may keep them, once they are valid.
  bool keep = true;
};

/// A file that does not change. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Its path or URL.
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;

  /// REQUIRES: the range lies within the file. A file from elsewhere is read again while the bytes
  /// are not `valid`; of one on this machine they are not checked here. Throws Error where the file
  /// cannot be read, DataError where what comes stays wrong.
  virtual HeldBytes read(const ByteRange& range) const = 0;

  /// A file of this machine with the ranges, which follow each other from byte 0: this one, or a
  /// copy on the disk. Throws like `read`.
  virtual std::unique_ptr<const ByteSource> local(std::span<const ByteRange> ranges) const = 0;

  /// A range that is read soon. Never waits, never throws.
  virtual void expect(const ByteRange&) const {}
};

/// A file of this machine. It is read, not mapped: a mapped file that another process cuts short
/// ends the process that reads it. Throws Error naming the file and the system's reason.
std::unique_ptr<ByteSource> open_local_file(const std::filesystem::path& file);

}  // namespace millrace
