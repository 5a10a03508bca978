// A synthetic data set with the object counts and sizes of val2017 and plausible detections, for
// measuring evaluation.
#pragma once

#include <cstdint>
#include <filesystem>

namespace millrace::cli {

struct SyntheticResultsOptions {
  std::int64_t images = 5000;
  std::int64_t detections = 100;  // per image; 0 = annotations only
  std::uint64_t seed = 1;
};

/// The files of a synthetic set. Annotations: 80 categories, 7.4 objects per image, 1 % of them
/// crowds as run lengths. Results, as boxes and as masks of the same detections: hits, near misses,
/// duplicates, wrong classes and background, with tied scores.
struct SyntheticResults {
  std::filesystem::path truth, boxes, masks;
};

/// Writes such a set. Equal options give equal bytes. Throws Error.
SyntheticResults write_synthetic_results(const std::filesystem::path& folder,
                                         const SyntheticResultsOptions& options);

}  // namespace millrace::cli
