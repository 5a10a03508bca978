// Whether a file is the one that it was, without reading it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace millrace {

struct FileStamp {
  std::uint64_t device = 0, node = 0, size = 0;
  std::int64_t written = 0;  // ns since 1970; programs may set it
  std::int64_t changed = 0;  // the same of bytes, times and names; no program can set it
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Nothing if there is no such file.
std::optional<FileStamp> stamp_of(const std::filesystem::path& file);

}  // namespace millrace
