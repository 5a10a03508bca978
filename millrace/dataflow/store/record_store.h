// Images and annotations packed into a few large files: nothing to list, nothing to parse, read where it lies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/store/lmdb_file.h"
#include "millrace/dataflow/store/record_header.h"
#include "millrace/engine/source.h"

namespace millrace {

/// Packs the samples of `source`, with the bytes of their image files as they are, into the new folder `folder`; class
/// k is called classes[k]. Made beside it as FOLDER.part and renamed, so that a pack that was killed leaves nothing
/// that opens. Throws Error naming a file that cannot be read, ConfigError where the folder exists.
void pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                  const std::filesystem::path& folder);

/// A packed folder, memory-mapped and never written: any thread and any number of processes may read it.
class RecordStore final : public Source<Sample> {
 public:
  /// Throws ConfigError where there is no finished store, Error naming the file: of another version, cut short, damaged in its header or index.
  explicit RecordStore(std::filesystem::path folder);

  const std::vector<std::string>& classes() const { return header_.classes; }

  std::int64_t size() const override { return std::ssize(header_.images); }

  /// The sample as it was packed; its `encoded` image is a view of the mapped file. Throws DataError naming the store
  /// and the record where its annotations are damaged; the image's bytes are checked where they are decoded.
  Sample operator[](std::int64_t index) const override;

 private:
  std::string_view value(const std::string& key, std::int64_t index) const;
  std::string where(std::int64_t index) const;

  std::filesystem::path folder_;
  RecordHeader header_;
  std::shared_ptr<const LmdbFile> records_;
};

}  // namespace millrace
