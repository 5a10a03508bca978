// Packs images and annotations into a record store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"
#include "millrace/dataflow/store/smaller_images.h"

namespace millrace {

struct PackOptions {
  SmallerImages images = {};
  int threads = 1;  // that make images smaller
  /// Size at which the next tar file of images begins; 0 = all images go into the records' file.
  std::uint64_t shard_bytes = 0;
};

struct PackReport {
  std::int64_t images = 0;
  std::int64_t smaller = 0;      // of the images
  std::int64_t unreadable = 0;   // too large, but cannot be decoded: packed as they are
  std::string first_unreadable;  // why
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of the image files
  std::size_t shards = 0;
};

/// Packs the samples of `source` and their image files' bytes into the new folder `folder`; class k
/// is called classes[k]. With `shard_bytes`, the images go into tar files in WebDataset's layout,
/// each beside its annotations (sample_json.h). The same bytes for any number of threads. A
/// PartFolder: a pack that was killed leaves no folder that opens. Throws Error naming a file that
/// cannot be read or written, ConfigError if the folder exists or the source repeats samples.
PackReport pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                        const std::filesystem::path& folder, const PackOptions& options = {});

}  // namespace millrace
