// A run's latest detections, evaluated again and analyzed.
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

/// The ground truth of a run's evaluation.
struct Truth {
  std::shared_ptr<const coco::Dataset> annotations;  // only the evaluated classes and images
  std::filesystem::path images;                      // folder of the images
};

/// Returns the validation split of a run's configuration; relative paths start at the folder in
/// which the run was started. Throws Error with what is missing.
Truth find_truth(const RunFiles& run);

/// Returns the part of a data set with these categories and the first `most_images` images; 0 =
/// all.
std::shared_ptr<const coco::Dataset> evaluated_part(std::shared_ptr<const coco::Dataset> all,
                                                    const std::vector<std::int64_t>& category_ids,
                                                    std::int64_t most_images);
/// Returns callbacks.evaluate.images; 0 if not set.
std::int64_t evaluated_images(const RunFiles& run);

struct RunScores {
  Truth truth;
  ResultsFile results;
  coco::Detections found;
  coco::Analysis boxes;
  std::optional<coco::Analysis> masks;  // nullopt unless all detections have masks
};

/// Evaluates the newest detections of a run. With `draws`, bootstraps intervals; with `reference`,
/// which must have the same images and categories, also compares with it. `threads` 0 = all.
RunScores score(const RunFiles& run, Truth truth, std::size_t draws, int threads,
                const RunScores* reference = nullptr);

/// Returns true if two runs were evaluated on the same objects.
bool same_truth(const coco::Dataset& a, const coco::Dataset& b);

}  // namespace millrace::report
