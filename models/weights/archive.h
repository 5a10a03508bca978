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

/// One file of an archive, read from start to end.
class ArchiveMember {
 public:
  /// `bytes`: its unpacked size.
  ArchiveMember(zip_t* archive, zip_uint64_t index, std::uint64_t bytes);

  /// Reads the next `bytes` bytes. Throws Error if there are fewer or they cannot be unpacked, and
  /// at the last byte if the whole does not match the archive's checksum.
  void read(void* to, std::uint64_t bytes);

 private:
  std::uint64_t left_;
  std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file_;
};

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
  ArchiveMember open(std::size_t entry) const;

 private:
  std::unique_ptr<zip_t, decltype(&zip_discard)> zip_;
  std::vector<Entry> entries_;
};

/// Writes an archive of files (name and bytes), not compressed, atomically. The same members give
/// the same bytes.
using ArchiveParts = std::vector<std::pair<std::string, std::string_view>>;
void write_archive(const std::filesystem::path& file, const ArchiveParts& members);

}  // namespace millrace
