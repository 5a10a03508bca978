// The parts that predictions in photos and videos share: the detector and the selection of objects
// to draw.
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
  const DataSplit& split;      // classes and categories of the labels
  const std::string& weights;  // the file of the detector's weights
  std::filesystem::path out;   // folder for results
  double score = 0.5;          // minimum score of drawn objects

  /// Returns the objects to draw. `counts`: if given, the number of drawn objects per class is
  /// added.
  std::vector<coco::Overlay> overlays(const std::vector<DetectedObject>& found,
                                      std::map<std::string, int>* counts = nullptr) const;
  /// Returns all objects as COCO detections, except those whose class has no category.
  coco::Detections detections(const std::vector<DetectedObject>& found,
                              std::int64_t image_id) const;
};

/// Returns "2 cat, 1 dog"; "no objects" if empty.
std::string counts_text(const std::map<std::string, int>& counts);

/// Shows the progress of a prediction as a bar on standard error, if that is a terminal.
class PredictionProgress {
 public:
  /// `before`: number of images already done. `all`: total number of images; 0 = not known.
  PredictionProgress(std::string noun, std::int64_t before, std::int64_t all);
  ~PredictionProgress();
  PredictionProgress(const PredictionProgress&) = delete;

  /// Returns true if lines on standard output would disturb the bar.
  bool owns_terminal() const;

  /// `note`: additional text.
  void show(std::int64_t done, const std::string& note = "");

 private:
  const bool is_shown_;
  const std::string noun_;
  const std::int64_t before_, all_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point shown_;
};

}  // namespace millrace::cli
