// What the stages before a cache made of each sample, kept in memory or on disk. When full, caches
// keep what they have. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

class SampleCache {
 public:
  virtual ~SampleCache() = default;
  /// A copy of what was made of sample `index`; nullopt if it is not kept.
  virtual std::optional<Sample> find(std::int64_t index) = 0;
  virtual void keep(std::int64_t index, const Sample& sample) = 0;
};

/// At most `max_bytes` in memory.
std::shared_ptr<SampleCache> memory_cache(std::size_t max_bytes);

/// At most `max_bytes` in the file FOLDER/<pipeline>.mdb, which other processes and later runs
/// share. `pipeline` is a digest of all that the stages before depend on besides their input. A
/// sample is found only while its input is the same: what `source` knows of it, and the size
/// and time of its file. Damaged values count as missing; a file that cannot be opened is made
/// anew, with a warning. Throws Error if the folder cannot be written to.
std::shared_ptr<SampleCache> disk_cache(const std::filesystem::path& folder, std::uint64_t pipeline,
                                        SourcePtr<Sample> source, std::size_t max_bytes);

}  // namespace millrace
