// The result of a study as the viewer's JSON (tools/report/README.md).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace millrace::report {

/// Returns true if a folder has a study.json.
bool is_study(const std::filesystem::path& folder);

/// Returns the view of kind "study": the result in study.json, with run names relative to the
/// study's folder. Throws Error if there is no result yet or the file cannot be read.
nlohmann::ordered_json study_view(const std::filesystem::path& folder);

}  // namespace millrace::report
