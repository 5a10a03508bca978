// Files that are whole or absent, and errors that say which file and why.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace millrace {

/// The bytes of a file. Throws Error naming the file and the system's reason.
std::string read_file(const std::filesystem::path& file);

/// Writes beside the file, syncs and renames: a reader sees the old bytes or the new, never half.
/// Throws Error naming the file and the system's reason.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

/// Flushes a file or folder to the disk. Throws Error.
void sync_path(const std::filesystem::path& path);

/// Makes a folder (and its parents). Throws Error saying why it cannot be made or written to.
void make_writable_folder(const std::filesystem::path& folder);

}  // namespace millrace
