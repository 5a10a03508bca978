// The header of a record store: offset and digest of each value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Return the files of a store in `folder`: the records and the header.
inline std::filesystem::path records_file(const std::filesystem::path& folder) {
  return folder / "records.bin";
}
inline std::filesystem::path header_file(const std::filesystem::path& folder) {
  return folder / "header";
}

/// The values of a record. In the file, values of one kind are consecutive, by record.
enum class RecordValue : std::size_t {
  about,   // the sample without outlines, used to plan batches
  sample,  // the sample with outlines
  image,   // the bytes of its image file
};
constexpr std::size_t kRecordValues = 3;

/// A file beside the records' file that contains the images of consecutive records.
struct RecordShard {
  std::string name;         // path or URL; see RecordStore
  std::uint64_t bytes = 0;  // size of the file
  std::uint64_t records = 0;
};

/// The end and the digest of each value. Without shards, all values follow each other in the
/// records' file. With shards, images are elsewhere: image i starts at image_begins[i] of its
/// shard, and the ends give only its length.
struct RecordHeader {
  std::vector<std::string> classes;
  std::vector<std::uint64_t> ends;     // bytes; each value begins where the previous one ends
  std::vector<std::uint64_t> digests;  // one per end
  std::vector<RecordShard> shards = {};
  std::vector<std::uint64_t> image_begins = {};  // one per record if there are shards

  std::size_t records() const { return ends.size() / kRecordValues; }
  /// Returns the size of the records' file.
  std::uint64_t file_bytes() const;
};

/// Writes the header atomically. Must be called last: a store without a header is unfinished.
void write_header(const std::filesystem::path& file, const RecordHeader& header);

/// Returns false for bytes that start like a header but have a wrong digest.
bool is_whole_header(std::string_view bytes);

/// Maximum length of a header; limits what a server may send.
constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{1} << 30;

/// Reads a header from a file's bytes; `file` is the prefix of error messages. Throws Error if the
/// header has another version, is damaged, or has a value outside the files that it describes.
RecordHeader read_header(std::string_view bytes, const std::string& file);

}  // namespace millrace
