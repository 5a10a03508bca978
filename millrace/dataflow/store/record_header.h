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
  return folder / "records.bin";
}
inline std::filesystem::path header_file(const std::filesystem::path& folder) {
  return folder / "header";
}

/// The values of a record. In the file the values of one kind stand together, by record.
enum class RecordValue : std::size_t {
  about,   // the sample without outlines: what batches are planned by
  sample,  // with them
  image,   // the bytes of its image file
};
constexpr std::size_t kRecordValues = 3;

/// Where each value of the records' file ends, and its digest: together they cover each byte of it.
struct RecordHeader {
  std::vector<std::string> classes;
  std::vector<std::uint64_t> ends;     // bytes; each value begins where the one before it ends
  std::vector<std::uint64_t> digests;  // as many

  std::size_t records() const { return ends.size() / kRecordValues; }
  std::uint64_t file_bytes() const { return ends.empty() ? 0 : ends.back(); }
  /// The place of a value in `ends` and `digests`.
  std::size_t place(RecordValue value, std::size_t record) const {
    return static_cast<std::size_t>(value) * records() + record;
  }
  /// The bytes of the value at a place, where `file` is all of the records' file.
  std::string_view bytes(std::string_view file, std::size_t place) const {
    const auto begin = place == 0 ? 0 : ends[place - 1];
    return file.substr(begin, ends[place] - begin);
  }
};

/// Written atomically, last of all: a store without it is unfinished.
void write_header(const std::filesystem::path& file, const RecordHeader& header);

/// Throws ConfigError where there is no such file, Error naming it: of another format or version,
/// damaged.
RecordHeader read_header(const std::filesystem::path& file);

}  // namespace millrace
