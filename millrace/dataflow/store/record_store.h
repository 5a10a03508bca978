// Images and annotations packed into one large file: nothing to list, nothing to parse, read where
// it lies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/store/record_header.h"
#include "millrace/engine/source.h"

namespace millrace {

/// Packs the samples of `source`, with the bytes of their image files as they are, into the new
/// folder `folder`; class k is called classes[k]. A PartFolder: a pack that was killed leaves
/// nothing that opens. Throws Error naming a file that cannot be read or written and why,
/// ConfigError where the folder exists.
void pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                  const std::filesystem::path& folder);

/// A packed folder, memory-mapped and never written: any thread and any number of processes may
/// read it.
class RecordStore final : public Source<Sample> {
 public:
  /// Throws ConfigError where there is no finished store, Error naming the file: of another
  /// version, cut short, with a damaged header.
  explicit RecordStore(std::filesystem::path folder);

  const std::vector<std::string>& classes() const { return header_.classes; }

  std::int64_t size() const override { return static_cast<std::int64_t>(header_.records()); }

  /// The sample as it was packed; its `encoded` image is a view of the mapped file. Throws
  /// DataError naming the store and the record where its annotations are damaged; the image's bytes
  /// are checked where they are decoded.
  Sample operator[](std::int64_t index) const override;

  /// The same without outlines (see Instances) and the image. Throws DataError.
  Sample about(std::int64_t index) const override;

 private:
  std::string_view value(RecordValue kind, std::int64_t index) const;
  Sample decoded(RecordValue kind, std::int64_t index) const;
  std::string where(std::int64_t index) const;

  std::filesystem::path file_;
  RecordHeader header_;
  SharedBytes records_;
};

}  // namespace millrace
