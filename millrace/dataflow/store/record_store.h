// Images and annotations packed into one large file: nothing to list or parse, read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/source.h"

namespace millrace {

/// The files of a store in `folder`: the records, and what it says about itself.
inline std::filesystem::path records_file(const std::filesystem::path& folder) {
  return folder / "records.bin";
}
inline std::filesystem::path header_file(const std::filesystem::path& folder) {
  return folder / "header";
}

/// Packs the samples of `source` and their image files' bytes into the new folder `folder`; class k
/// is called classes[k]. A PartFolder: a pack that was killed leaves nothing that opens. Throws
/// Error naming a file that cannot be read or written, ConfigError if the folder exists.
void pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                  const std::filesystem::path& folder);

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
};

/// A packed folder, memory-mapped and never written: any thread and process may read it.
class RecordStore final : public Source<Sample> {
 public:
  /// Throws ConfigError where there is no finished store, Error naming the file: of another
  /// version, cut short, with a damaged header.
  explicit RecordStore(const std::filesystem::path& folder);

  const std::vector<std::string>& classes() const { return header_.classes; }

  std::int64_t size() const override { return static_cast<std::int64_t>(header_.records()); }

  /// The sample as it was packed; its `encoded` image is a view of the mapped file. Throws
  /// DataError if its annotations are damaged; the image's bytes are checked by the decoder.
  Sample operator[](std::int64_t index) const override;
  /// The same without outlines (see Instances) and the image.
  Sample about(std::int64_t index) const override;

 private:
  struct Value {
    std::string_view bytes;
    std::uint64_t digest;
  };
  Value value(RecordValue kind, std::int64_t index) const;
  Sample decoded(RecordValue kind, std::int64_t index) const;

  std::filesystem::path file_;
  RecordHeader header_;
  SharedBytes records_;
};

}  // namespace millrace
