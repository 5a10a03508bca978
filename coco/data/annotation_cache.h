// A cache of parsed annotations that later starts map into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// Smaller files, in bytes, are not cached: reading them takes at most 4 ms.
inline constexpr std::uint64_t kLeastCached = std::uint64_t{1} << 20;

/// Smaller files, in bytes, and their caches are verified at each start: that takes at most 0.1 s.
inline constexpr std::uint64_t kLeastTrusted = std::uint64_t{512} << 20;

/// Reads a data set like `read_dataset`, but caches large files by their content and maps the
/// cache, which is shared by all processes. The folder is MILLRACE_CACHE, otherwise
/// $XDG_CACHE_HOME/millrace, otherwise ~/.cache/millrace; `MILLRACE_CACHE=off` disables caching. A
/// cache that is damaged or has another version is replaced with a warning. A background thread
/// writes caches and removes those unused for 90 days. If the folder is not writable, warns once,
/// or throws ConfigError if MILLRACE_CACHE names the folder. Files of at least `least_trusted`
/// bytes are not verified while the JSON and the cache have the sizes, inodes and times of their
/// last verification.
std::shared_ptr<const Dataset> read_dataset_cached(const std::filesystem::path& json,
                                                   std::uint64_t least_trusted = kLeastTrusted);

/// Waits for the caches being written; also done at the end of the program. A kill leaves no
/// partial cache.
void finish_caching();

}  // namespace millrace::coco
