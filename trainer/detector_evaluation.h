// The scoring of what a detector finds, while it finds it, over all images or in parts.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "trainer/evaluation.h"

namespace millrace {

/// Each image once: `detect` over a flow, or over several shards of it in several objects that are then merged.
class DetectorEvaluation {
 public:
  DetectorEvaluation(const DataSplit& split, EvaluationRun run);

  /// Detects in everything that the flow gives. False where it was cancelled.
  bool detect(Detector& detector, DataFlow<Batch>& flow);

  /// What the images seen so far come to.
  DetectorScores scores();

 private:
  void add(std::int64_t image_id, std::vector<DetectedObject> objects);
  bool has_enough() const { return run_.max_images > 0 && images_ >= run_.max_images; }

  EvaluationRun run_;
  std::vector<std::int64_t> category_ids_;
  std::shared_ptr<const coco::Dataset> truth_;
  std::vector<std::int64_t> seen_;
  std::vector<coco::Detection> detections_;
  std::int64_t images_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace millrace
