// Scores what a detector finds, over all images or in parts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "millrace/base/clock.h"
#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/trainer/evaluation/evaluation.h"

namespace millrace {

/// The result of some of the images: counts, and the bytes of each evaluator that was asked for.
struct EvaluationPart {
  std::int64_t objects = 0, masks = 0;
  std::string box_matches, mask_matches, boundary_matches, proposal_matches;
  std::string detections;
};

/// Each image once: by `detect` over all, or over shards whose parts are merged, to the same
/// bits. Images are matched as they come, so that `scores` has little left to do. For one thread
/// at a time.
class DetectorEvaluation {
 public:
  DetectorEvaluation(const DataSplit& split, EvaluationRun run);

  /// Detects in all that the flow gives. False if it was cancelled. Throws Error for an image
  /// that comes twice or that the split lacks.
  bool detect(Detector& detector, std::unique_ptr<DataFlow<Batch>> flow);

  /// The result so far, for `merge`.
  EvaluationPart part() const;

  /// Adds another result of the same split. Throws Error, and is of no use then, if that is
  /// broken, of another split, or has an image twice.
  void merge(const EvaluationPart& part);

  /// Merges the shares of all ranks on the chief. `whole`: this rank's was not cancelled. Every
  /// rank calls it. False if one was cancelled: then there are no scores.
  bool join(const Cluster& cluster, bool whole);

  /// Of all images, those that could not be read counting as without detections; with max_images,
  /// of the images so far. Throws Error if only some objects have masks. Call once.
  DetectorScores scores();

 private:
  /// `truth`: the part of the split that counts.
  DetectorEvaluation(const std::shared_ptr<const coco::Dataset>& truth, const DataSplit& split,
                     EvaluationRun run);
  void add(std::int64_t image_id, std::vector<DetectedObject> objects);
  void add_proposals(std::int64_t image_id, const std::vector<DetectedObject>& proposals);

  EvaluationRun run_;
  std::string title_ = "the detector";
  std::int64_t last_image_;  // id of the last that counts
  std::vector<std::int64_t> category_ids_;
  coco::LimitCost limit_;
  coco::Evaluator boxes_, masks_;
  std::optional<coco::Evaluator> boundaries_, proposals_;
  std::int64_t any_category_ = kNoCategory;  // of the proposals, which are of none
  bool gives_masks_ = true;
  std::int64_t found_ = 0, masked_ = 0;  // objects, and those with masks
  coco::Detections detections_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace millrace
