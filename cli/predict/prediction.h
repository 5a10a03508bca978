// What photos and videos of one command share: the model, and what is shown of its objects.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/run/session.h"

namespace millrace::cli {

struct Prediction {
  const Session& session;
  Detector& detector;
  const DataSplit& split;      // the labels' classes and categories
  const std::string& weights;  // where the detector's come from
  std::filesystem::path out;   // folder for results
  double score = 0.5;          // what is drawn scores at least this

  /// What is drawn of objects; `counts`: by class.
  std::vector<coco::Overlay> overlays(const std::vector<DetectedObject>& found,
                                      std::map<std::string, int>* counts = nullptr) const;
  /// All of them as COCO has them, without those whose class has no category.
  coco::Detections detections(const std::vector<DetectedObject>& found,
                              std::int64_t image_id) const;
};

/// "2 cat, 1 dog"; "nothing" without any.
std::string counts_text(const std::map<std::string, int>& counts);

/// Shows on a terminal how far a prediction is: a bar, on standard error.
class PredictionProgress {
 public:
  /// `before` of `all` images are done already; `all` is 0 if nobody knows.
  PredictionProgress(std::string noun, std::int64_t before, std::int64_t all);
  ~PredictionProgress();
  PredictionProgress(const PredictionProgress&) = delete;

  /// Whether lines on standard output would tear the bar.
  bool owns_terminal() const;

  /// `note`: what else there is to say.
  void show(std::int64_t done, const std::string& note = "");

 private:
  const bool is_shown_;
  const std::string noun_;
  const std::int64_t before_, all_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point shown_;
};

}  // namespace millrace::cli
