// Files, local or remote, that are read by ranges, whatever their format.
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
  /// Returns true if the bytes are those written; empty = unknown. Thread-safe.
  std::function<bool(std::string_view)> valid = {};
};

/// A file that does not change. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Returns the path or URL.
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;

  /// Reads a range. A remote file is read again while the bytes are not `valid`; bytes of a local
  /// file are not checked here. Throws Error if the file cannot be read, DataError if its bytes
  /// remain wrong. REQUIRES: the range is inside the file.
  virtual HeldBytes read(const ByteRange& range) const = 0;

  /// Returns a local file with the ranges, which are consecutive from byte 0: this file, or a copy
  /// on disk. Throws as `read`.
  virtual std::unique_ptr<const ByteSource> local(std::span<const ByteRange> ranges) const = 0;

  /// Announces that a range will be read soon. Never waits, never throws.
  virtual void expect(const ByteRange&) const {}
};

/// Opens a local file. It is read, not mapped, since truncation of a mapped file by another process
/// would kill the reader. Throws Error with the file and the system's reason.
std::unique_ptr<ByteSource> open_local_file(const std::filesystem::path& file);

}  // namespace millrace
