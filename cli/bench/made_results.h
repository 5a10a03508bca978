// A data set with the numbers and sizes of val2017 and plausible detections, to measure evaluation
// on.
#pragma once

#include <cstdint>
#include <filesystem>

namespace millrace::cli {

struct MadeResultsOptions {
  std::int64_t images = 5000;
  std::int64_t detections = 100;  // per image; 0: the annotations alone
  std::uint64_t seed = 1;
};

/// The files of a made set: annotations of 80 categories, 7.4 objects an image, 1 % of them crowds
/// as run lengths; results as boxes and the same as masks, with hits, near misses, duplicates,
/// wrong classes and background, and ties in score.
struct MadeResults {
  std::filesystem::path truth, boxes, masks;
};

/// Writes such a set; the same bytes for the same options. Throws Error.
MadeResults make_results(const std::filesystem::path& folder, const MadeResultsOptions& options);

}  // namespace millrace::cli
