// Zip archives, the container of .npz and .pth files.
#pragma once

#include <zip.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

class Archive {
 public:
  struct Entry {
    std::string name;
    std::uint64_t bytes;  // unpacked
  };

  /// Throws Error if the file is not an archive, or its entries would unpack to far more than any
  /// weights do.
  explicit Archive(const std::filesystem::path& file);

  const std::vector<Entry>& entries() const { return entries_; }
  /// Returns the bytes of an entry. Throws Error if there are fewer than declared, they cannot be
  /// unpacked, or they do not match the archive's checksum.
  std::string read(std::size_t entry) const;

 private:
  std::unique_ptr<zip_t, decltype(&zip_discard)> zip_;
  std::vector<Entry> entries_;
};

/// Writes an archive of files (name and bytes), not compressed, atomically. The same members give
/// the same bytes.
using ArchiveParts = std::vector<std::pair<std::string, std::string_view>>;
void write_archive(const std::filesystem::path& file, const ArchiveParts& members);

}  // namespace millrace
