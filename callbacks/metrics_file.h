// metrics.jsonl: a JSON object a line, in the order of steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace {

/// Appends a line in one write, so that no reader sees lines of two writers mixed. Throws Error.
void append_line(const std::filesystem::path& file, const std::string& line);

/// Removes the lines of steps after `step`, and one that a killed process left unfinished: a
/// resumed run writes them again. Does nothing where the file is missing.
void drop_lines_after(const std::filesystem::path& file, std::int64_t step);

}  // namespace millrace
