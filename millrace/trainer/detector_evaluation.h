// The scoring of what a detector finds, while it finds it, over all images or in parts.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/trainer/evaluation.h"

namespace millrace {

/// Each image once: by `detect` over a flow of all of them, or over shards in objects whose
/// partials are merged, which gives the same bits. Images are matched with what is annotated as
/// they come, so that `scores` has little left to do. For one thread at a time.
class DetectorEvaluation {
 public:
  DetectorEvaluation(const DataSplit& split, EvaluationRun run);

  /// Detects in everything that the flow gives. False where it was cancelled. Throws Error for an
  /// image that came before or that the split lacks.
  bool detect(Detector& detector, std::unique_ptr<DataFlow<Batch>> flow);

  /// All that is known, for `merge` elsewhere.
  std::string partial() const;

  /// Adds what another one of the same split knows. Throws Error where it is of another, broken, or
  /// has an image that is here already; this one is of no use then.
  void merge(std::string_view partial);

  /// Gives the chief what all ranks know, each of its share; `whole`: this one was not cancelled.
  /// Every rank calls it. False where one was cancelled; none has what it needs for scores then.
  bool join(const Cluster& cluster, bool whole);

  /// Of the images so far, or of all images as if nothing had been found in the others: those could
  /// not be read. Throws Error where the detector gave masks for some objects only. Call once.
  DetectorScores scores();

 private:
  DetectorEvaluation(const std::shared_ptr<const coco::Dataset>& truth,
                     std::vector<std::int64_t> category_ids, EvaluationRun run);
  void add(std::int64_t image_id, std::vector<DetectedObject> objects);

  EvaluationRun run_;
  std::string title_ = "the detector";
  std::int64_t last_image_;  // id of the last that counts
  std::vector<std::int64_t> category_ids_;
  coco::Evaluator boxes_, masks_;
  bool gives_masks_ = true;              // as far as is known
  std::int64_t found_ = 0, masked_ = 0;  // objects, and those with masks
  coco::Detections detections_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace millrace
