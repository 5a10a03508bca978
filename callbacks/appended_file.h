// A file of a run that only grows, but for what a resumed run drops.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace millrace {

/// Appends in one write, so that no reader sees the bytes of two writers mixed. Throws Error.
void append_to(const std::filesystem::path& file, std::string_view bytes);

/// Drops what stands behind the first `size` bytes. Does nothing where the file is missing or not longer. Throws Error.
void cut_file(const std::filesystem::path& file, std::uintmax_t size);

}  // namespace millrace
