// `trainer report`: runs that are compared, and studies, as the viewer's JSON.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "millrace/tools/report/run_files.h"
#include "millrace/tools/report/run_pictures.h"
#include "millrace/tools/report/run_scores.h"

namespace millrace::report {

struct ReportOptions {
  std::size_t draws = 1000;  // bootstrap samples; 0 = no intervals and no verdict on differences
  int threads = 0;           // 0 = all cores
  PictureLimits pictures;    // for all runs together; may be lowered to fit the size of the page
  /// Returns a run's annotations and image folder.
  std::function<Truth(const RunFiles&)> truth = find_truth;
};

/// Returns the view of kind "runs" (tools/report/README.md). Each run's scores are compared with
/// those of the first run, and tested for whether the choice of images explains the difference.
/// Missing or unreadable parts are described by sentences in it. Equal input gives equal JSON.
/// Requires at least one run.
nlohmann::ordered_json runs_view(std::span<const RunFiles> runs, const ReportOptions& options = {});

/// Returns the conclusion of comparing two results on the same images, as plain text.
std::string verdict(const coco::Comparison& comparison, const std::string& run,
                    const std::string& reference);

/// Returns true if a folder has a study.json.
bool is_study(const std::filesystem::path& folder);

/// Returns the view of kind "study": the result in study.json, with run names relative to the
/// study's folder. Throws Error if there is no result yet or the file cannot be read.
nlohmann::ordered_json study_view(const std::filesystem::path& folder);

}  // namespace millrace::report
