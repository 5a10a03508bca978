// `trainer report`: one or several runs for the viewer, to draw conclusions from.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "millrace/tools/report/run_files.h"
#include "millrace/tools/report/run_pictures.h"
#include "millrace/tools/report/run_scores.h"

namespace millrace::report {

struct ReportOptions {
  std::size_t draws = 1000;  // of the bootstrap; 0: no intervals and no verdict on differences
  int threads = 0;           // 0: all cores
  PictureLimits pictures;    // of all runs together; their bytes leave room for the other figures
  /// Where a run's annotations and images are.
  std::function<Truth(const RunFiles&)> truth = find_truth;
};

/// The view of kind "runs" (tools/report/README.md). Each run is compared with the first: what
/// differs in scores, and whether that is more than the choice of images explains. What is missing
/// or cannot be read is a sentence in it. Equal input gives equal JSON. REQUIRES: a run.
nlohmann::ordered_json runs_view(std::span<const RunFiles> runs, const ReportOptions& options = {});

/// What may be concluded from two results over the same images, in plain words. Text.
std::string verdict(const coco::Comparison& comparison, const std::string& run,
                    const std::string& reference);

}  // namespace millrace::report
