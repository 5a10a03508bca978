// Selects the best and worst images of an evaluation, with detections and annotations.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "millrace/tools/report/gallery.h"
#include "millrace/tools/report/run_scores.h"

namespace millrace::report {

/// Limits on the number of images and on the bytes of JSON; pictures are as large as these allow.
struct PictureLimits {
  std::size_t images = 200;
  std::size_t bytes = 4'400'000;
};

struct RunPictures {
  Gallery gallery;
  std::string problem;  // which images cannot be shown, and why, as a sentence; empty = none
};

/// Returns images ordered worst first. Uses all threads of the caller's arena; the result does not
/// depend on their number.
RunPictures run_pictures(const RunScores& scores, const PictureLimits& limits);

/// Returns up to `most` indices in Dataset::images, worst first. If there are more images, it
/// selects those with the lowest F1, those with the most errors, and the best ones with objects.
std::vector<std::size_t> chosen_images(const RunScores& scores, double score, std::size_t most);

/// Counts of correct and wrong detections in an image, above a score threshold.
struct ImageTally {
  int objects = 0, hits = 0, wrong = 0;
  int missed() const { return objects - hits; }
  /// Returns the F1 score; 1 if there are no objects and no detections.
  double f1() const {
    return objects + hits + wrong == 0 ? 1 : 2. * hits / (objects + hits + wrong);
  }
};

/// Returns the tally of each image. An object is a hit if its detection has at least `score`.
std::vector<ImageTally> tallies(const RunScores& scores, double score);

}  // namespace millrace::report
