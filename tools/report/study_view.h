// The result of a study as the viewer's JSON (tools/report/README.md).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace millrace::report {

/// Whether a folder is a study's: it has a study.json.
bool is_study(const std::filesystem::path& folder);

/// The view of kind "study": the result in study.json, its runs named from the study's folder.
/// Throws Error if there is no result yet, or the file cannot be read.
nlohmann::ordered_json study_view(const std::filesystem::path& folder);

}  // namespace millrace::report
