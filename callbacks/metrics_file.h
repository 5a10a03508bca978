// metrics.jsonl: a JSON object a line, in the order in which figures became known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace {

/// Appends a line in one write, so that no reader sees lines of two writers mixed. Throws Error.
void append_line(const std::filesystem::path& file, const std::string& line);

/// Drops what stands behind the first `size` bytes. Does nothing where the file is missing or not longer. Throws Error.
void cut_file(const std::filesystem::path& file, std::uintmax_t size);

}  // namespace millrace
