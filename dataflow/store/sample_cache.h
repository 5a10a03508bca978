// Stores the results of the stages before a cache by sample, in memory or on disk. A full cache
// keeps its entries and accepts no more. Thread-safe.
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
  /// Returns a copy of the result for sample `index`; nullopt if it is not stored.
  virtual std::optional<Sample> find(std::int64_t index) = 0;
  virtual void keep(std::int64_t index, const Sample& sample) = 0;
};

/// Returns a cache of at most `max_bytes` in memory.
std::shared_ptr<SampleCache> memory_cache(std::size_t max_bytes);

/// Returns a cache of at most `max_bytes` in the file FOLDER/<pipeline>.mdb, which other processes
/// and later runs share. `pipeline` is a digest of everything that the stages before depend on
/// besides their input. A sample is found only while its input is unchanged: the sample in
/// `source`, and the size and time of its file. Damaged values count as missing; a file that cannot
/// be opened is recreated, with a warning. Throws Error if the folder is not writable.
std::shared_ptr<SampleCache> disk_cache(const std::filesystem::path& folder, std::uint64_t pipeline,
                                        SourcePtr<Sample> source, std::size_t max_bytes);

}  // namespace millrace
