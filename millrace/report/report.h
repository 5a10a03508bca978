// `trainer report`: one page of one or several runs, to draw conclusions from.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "millrace/report/picture_section.h"
#include "millrace/report/run_files.h"
#include "millrace/report/run_scores.h"

namespace millrace::report {

struct ReportOptions {
  std::size_t draws = 1000;  // of the bootstrap; 0: no intervals and no verdict on differences
  int threads = 0;           // 0: all cores
  PictureLimits pictures;    // of all runs together
  /// Where a run's annotations and images are.
  std::function<Truth(const RunFiles&)> truth = find_truth;
};

/// The page. Several runs are drawn over each other, and each is compared with the first: what
/// differs in configuration and scores, and whether that is more than the choice of images
/// explains. What is missing or cannot be read is a sentence in the page. Equal input gives equal
/// bytes. REQUIRES: a run.
std::string report_page(std::span<const RunFiles> runs, const ReportOptions& options = {});

/// What may be concluded from two results over the same images, in plain words. Text.
std::string verdict(const coco::Comparison& comparison, const std::string& run,
                    const std::string& reference);

}  // namespace millrace::report
