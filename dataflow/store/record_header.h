// The header of a record store: the place and the digest of each value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// The files of a store in `folder`: the records and the header.
inline std::filesystem::path records_file(const std::filesystem::path& folder) {
  return folder / "records.bin";
}
inline std::filesystem::path header_file(const std::filesystem::path& folder) {
  return folder / "header";
}

/// The values of a record. In the file the values of one kind are together, by record.
enum class RecordValue : std::size_t {
  about,   // the sample without outlines: what batches are planned by
  sample,  // with them
  image,   // the bytes of its image file
};
constexpr std::size_t kRecordValues = 3;

/// A file, beside the records', that holds the images of some records in a row.
struct RecordShard {
  std::string name;         // see shard_place
  std::uint64_t bytes = 0;  // of the file
  std::uint64_t records = 0;
};

/// The end and the digest of each value. Without shards the values follow each other in the
/// records' file. With shards the images do not: image i begins at image_begins[i] of its shard,
/// and only its length follows from the ends.
struct RecordHeader {
  std::vector<std::string> classes;
  std::vector<std::uint64_t> ends;     // bytes; each value begins where the one before it ends
  std::vector<std::uint64_t> digests;  // one per end
  std::vector<RecordShard> shards = {};
  std::vector<std::uint64_t> image_begins = {};  // one per record, with shards

  std::size_t records() const { return ends.size() / kRecordValues; }
  /// Of the records' file.
  std::uint64_t file_bytes() const;
};

/// Written atomically, last of all: a store without it is unfinished.
void write_header(const std::filesystem::path& file, const RecordHeader& header);

/// False for bytes that begin like a header but have a wrong digest.
bool is_whole_header(std::string_view bytes);

/// A longer header is not read: a server may send as much as it likes.
constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{1} << 30;

/// The header in such a file's bytes; `file` names it in messages. Throws Error: of another
/// version, damaged, or with a value outside the files that it describes.
RecordHeader read_header(std::string_view bytes, const std::string& file);

}  // namespace millrace
