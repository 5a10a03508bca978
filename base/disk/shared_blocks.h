// Files that share on the disk what they have in common with an earlier one.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace millrace {

/// Writes a new file of `parts`, one after the other, and syncs it. Where the file system shares
/// blocks (reflinks: XFS, Btrfs), those that equal `like` at the same place are shared with it:
/// they take neither room nor writing. Elsewhere, and where `like` cannot be read, all is written.
/// Throws Error naming the file and the system's reason.
void write_sharing(const std::filesystem::path& file, std::span<const std::string_view> parts,
                   const std::filesystem::path& like);

}  // namespace millrace
