// Scores the detections of a detector, over all images or in parts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "millrace/base/clock.h"
#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/trainer/evaluation/evaluation.h"

namespace millrace {

/// The result of some of the images: counts, and the serialized state of each requested evaluator.
struct EvaluationPart {
  std::int64_t objects = 0, masks = 0;
  std::string box_matches, mask_matches, boundary_matches, proposal_matches;
  std::string detections;
};

/// Evaluates each image once: with `detect` over all images, or over shards whose parts are merged
/// with identical results. Images are matched when they are added, so that `scores` is fast. For
/// one thread at a time.
class DetectorEvaluation {
 public:
  DetectorEvaluation(const DataSplit& split, EvaluationRun run);

  /// Detects in all images of the flow. Returns false if it was cancelled. Throws Error for an
  /// image that occurs twice or is not in the split.
  bool detect(Detector& detector, std::unique_ptr<DataFlow<Batch>> flow);

  /// Returns the current result, for `merge`.
  EvaluationPart part() const;

  /// Adds another result of the same split. Throws Error if it is damaged, belongs to another
  /// split, or contains an image twice; this object must not be used afterwards.
  void merge(const EvaluationPart& part);

  /// Merges the shares of all ranks on rank 0. `whole`: this rank's share was not cancelled. Every
  /// rank calls it. Returns false if any share was cancelled; then there are no scores.
  bool join(const Cluster& cluster, bool whole);

  /// Returns the scores over all images (with max_images, over the images so far). Images that
  /// could not be read count as images without detections. Throws Error if only some objects have
  /// masks. Call once.
  DetectorScores scores();

 private:
  void add(std::int64_t image_id, std::vector<DetectedObject> objects);
  void add_proposals(std::int64_t image_id, const std::vector<DetectedObject>& proposals);

  EvaluationRun run_;
  std::shared_ptr<const coco::Dataset> truth_;  // the annotations of the evaluated classes
  std::string title_ = "the detector";
  std::int64_t last_image_;  // id of the last evaluated image
  std::vector<std::int64_t> category_ids_;
  coco::LimitCost limit_;
  coco::Evaluator boxes_, masks_;
  std::optional<coco::Evaluator> boundaries_, proposals_;
  std::int64_t any_category_ = kNoCategory;  // category of all proposals, which have no class
  bool gives_masks_ = true;
  std::int64_t found_ = 0, masked_ = 0;  // objects found, and those with masks
  coco::Detections detections_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace millrace
