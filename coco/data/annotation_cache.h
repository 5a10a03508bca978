// Annotations that were read once are taken from a mapped file at the next start.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// Smaller files, in bytes, are read each time: that takes at most 4 ms.
inline constexpr std::uint64_t kLeastCached = std::uint64_t{1} << 20;

/// Smaller ones, and their caches, are read through at each start: that takes at most 0.1 s.
inline constexpr std::uint64_t kLeastTrusted = std::uint64_t{512} << 20;

/// As `read_dataset`, but a large file's data set is cached by its content and mapped, shared by
/// all processes. The folder is MILLRACE_CACHE, else $XDG_CACHE_HOME/millrace, else
/// ~/.cache/millrace; `MILLRACE_CACHE=off` reads the JSON each time. A damaged cache or one of
/// another version is replaced with a warning. A background thread writes it, and removes caches
/// unused for 90 days. If the folder cannot be written, warns once, or throws ConfigError if
/// MILLRACE_CACHE names it. Of files of `least_trusted` bytes or more neither JSON nor cache is
/// read through while both have the sizes, inodes and times with which they were found sound.
std::shared_ptr<const Dataset> read_dataset_cached(const std::filesystem::path& json,
                                                   std::uint64_t least_trusted = kLeastTrusted);

/// Waits for the caches being written, as the end of the program does. A kill leaves no half cache.
void finish_caching();

}  // namespace millrace::coco
