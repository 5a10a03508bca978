// A run's latest detections, scored again and analyzed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "millrace/coco/analysis/analysis.h"
#include "millrace/tools/report/run_files.h"

namespace millrace::report {

/// What an evaluation of a run was measured on.
struct Truth {
  std::shared_ptr<const coco::Dataset> annotations;  // of the evaluated classes and images alone
  std::filesystem::path images;                      // folder
};

/// The validation split of a run's configuration, looked for from the folder that it was started
/// in. Throws Error saying what is missing.
Truth find_truth(const RunFiles& run);

/// The part of a data set with these categories and the first `most_images` images; 0 = all.
std::shared_ptr<const coco::Dataset> evaluated_part(std::shared_ptr<const coco::Dataset> all,
                                                    const std::vector<std::int64_t>& category_ids,
                                                    std::int64_t most_images);
/// callbacks.evaluate.images; 0 if not given.
std::int64_t evaluated_images(const RunFiles& run);

struct RunScores {
  Truth truth;
  ResultsFile results;
  coco::Detections found;
  coco::Analysis boxes;
  std::optional<coco::Analysis> masks;  // if the detections have any
};

/// Scores the newest detections of a run; with `draws` also intervals, and with `reference`, of the
/// same images and categories, what differs from it. `threads`: 0, all.
RunScores score(const RunFiles& run, Truth truth, std::size_t draws, int threads,
                const RunScores* reference = nullptr);

/// Whether two runs were evaluated on the same objects.
bool same_truth(const coco::Dataset& a, const coco::Dataset& b);

}  // namespace millrace::report
