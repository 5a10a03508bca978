// Where a run keeps its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace millrace {

/// Makes `output`/name-N with the first N that no run in `output` has yet; nothing is ever deleted.
/// Throws Error where the folder cannot be made or written to.
std::filesystem::path make_run_folder(const std::filesystem::path& output, const std::string& name);

/// The run in `output` with the highest number, if there is any.
std::optional<std::filesystem::path> newest_run_folder(const std::filesystem::path& output);

}  // namespace millrace
