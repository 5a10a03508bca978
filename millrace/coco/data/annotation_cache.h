// Annotations that were read once are taken from a mapped file at the next start.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// As `read_dataset`; a large file's data set is kept in the user's folder of caches and mapped
/// from there, shared by all processes, as long as the file's content is the same.
///
/// The folder is MILLRACE_CACHE, else $XDG_CACHE_HOME/millrace, else ~/.cache/millrace;
/// `MILLRACE_CACHE=off` reads the JSON each time. A cache that is damaged, of another version or of
/// other content is never used: it is made anew with a warning. It is written by a thread of its
/// own, while the data set is used already; what nobody has used for 90 days is removed then. Where
/// the folder cannot be written, a warning says so once; throws ConfigError where it is
/// MILLRACE_CACHE that names it.
std::shared_ptr<const Dataset> read_dataset_cached(const std::filesystem::path& json);

/// Waits until all caches that are being written are whole or given up. The end of the program does
/// so too; one that is killed leaves no half cache.
void finish_caching();

/// Smaller files, in bytes, are read each time. A cache is as fast from 8 kB on, but to read a file
/// of this size takes 4 ms, which nobody waits for, and folders should not fill with what saves
/// less.
inline constexpr std::uint64_t kLeastCached = std::uint64_t{1} << 20;

}  // namespace millrace::coco
