// The best and the worst images of an evaluation: what was found beside what is there.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "millrace/tools/report/gallery.h"
#include "millrace/tools/report/run_scores.h"

namespace millrace::report {

/// Maximum images and bytes of JSON; pictures are as large as these allow.
struct PictureLimits {
  std::size_t images = 200;
  std::size_t bytes = 4'400'000;
};

struct RunPictures {
  Gallery gallery;
  std::string problem;  // which images cannot be shown, and why: a sentence; empty: all can
};

/// Images are ordered worst first. By all threads of the caller's arena; the same for any number.
RunPictures run_pictures(const RunScores& scores, const PictureLimits& limits);

/// Positions in Dataset::images of those to show, worst first: all of few; of many the lowest F1,
/// the most errors, and the best that have objects.
std::vector<std::size_t> chosen_images(const RunScores& scores, double score, std::size_t most);

/// What is right and wrong in an image among detections with at least a score.
struct ImageTally {
  int objects = 0, hits = 0, wrong = 0;
  int missed() const { return objects - hits; }
  /// Of precision and recall; 1 if there are no objects and no detections.
  double f1() const {
    return objects + hits + wrong == 0 ? 1 : 2. * hits / (objects + hits + wrong);
  }
};

/// (images) of each. An object counts as found by its detection's score.
std::vector<ImageTally> tallies(const RunScores& scores, double score);

}  // namespace millrace::report
