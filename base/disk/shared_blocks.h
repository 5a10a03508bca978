// Files that share disk blocks with an earlier version of the file.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace millrace {

/// Writes a new file with the concatenated `parts` and syncs it. On file systems with reflinks
/// (XFS, Btrfs), blocks that equal those of `like` at the same offset are shared with it and cost
/// neither space nor writes. Otherwise, or if `like` cannot be read, all bytes are written. Throws
/// Error naming the file and the system's reason.
void write_sharing(const std::filesystem::path& file, std::span<const std::string_view> parts,
                   const std::filesystem::path& like);

}  // namespace millrace
