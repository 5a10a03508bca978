// What a record store says about itself, in a file of its own beside the records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// The files of a store in `folder`.
inline std::filesystem::path records_file(const std::filesystem::path& folder) {
  return folder / "records.mdb";
}
inline std::filesystem::path header_file(const std::filesystem::path& folder) {
  return folder / "header";
}

/// The key of record `index`'s annotations and of its image file's bytes.
std::string annotations_key(std::int64_t index);
std::string image_key(std::int64_t index);

/// Seals a store: all that `records.mdb` must be. LMDB trusts the pages that tell where values lie (and that hold the
/// values of less than half a page), so these are checked when a store is opened; values when they are read.
struct RecordHeader {
  std::vector<std::string> classes;
  std::vector<std::uint64_t> annotations, images;  // digest of each record's values
  std::uint64_t file_bytes = 0;
  std::uint64_t page_bytes = 0;
  std::vector<std::uint64_t> tree_pages;  // numbers of the pages that are no large value's own
  std::uint64_t tree_digest = 0;          // of those pages
};

/// The length of the records' file, its pages and their digest put into `header`.
void seal(const std::filesystem::path& records, std::uint64_t page_bytes, RecordHeader& header);

/// Throws Error where the file is not as it was sealed.
void check_seal(const std::filesystem::path& records, const RecordHeader& header);

/// Written atomically, last of all: a store without it is unfinished.
void write_header(const std::filesystem::path& file, const RecordHeader& header);

/// Throws ConfigError where there is no such file, Error naming it: of another format or version, damaged.
RecordHeader read_header(const std::filesystem::path& file);

}  // namespace millrace
