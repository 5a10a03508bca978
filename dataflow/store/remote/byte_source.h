// Files, local or remote, read by ranges, whatever their format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

/// Bytes and their owner.
struct HeldBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

/// Bytes `begin` .. `begin + size` of a file.
struct ByteRange {
  std::uint64_t begin = 0, size = 0;
  /// Whether these are the bytes that were written; empty: not known. Any thread.
  std::function<bool(std::string_view)> valid = {};
};

/// A file that does not change. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Its path or URL.
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;

  /// REQUIRES: the range lies within the file. A remote file is read again while the bytes are not
  /// `valid`; those of a local one are not checked here. Throws Error if the file cannot be read,
  /// DataError if its bytes stay wrong.
  virtual HeldBytes read(const ByteRange& range) const = 0;

  /// A local file with the ranges, which follow each other from byte 0: this one, or a copy on the
  /// disk. Throws like `read`.
  virtual std::unique_ptr<const ByteSource> local(std::span<const ByteRange> ranges) const = 0;

  /// Announces a range that is read soon. Never waits, never throws.
  virtual void expect(const ByteRange&) const {}
};

/// A file of this machine. It is read, not mapped: a mapped file that another process cuts short
/// ends the process that reads it. Throws Error naming the file and the system's reason.
std::unique_ptr<ByteSource> open_local_file(const std::filesystem::path& file);

}  // namespace millrace
