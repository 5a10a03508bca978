// Scores a detector over the validation split by the rules of COCO or LVIS.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/coco/evaluation/limit_cost.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/metrics.h"
#include "millrace/trainer/validation_pass.h"

namespace millrace {

/// The validation split. `start` begins a pass over a share of its images, by ascending id.
/// Thread-safe.
struct EvalData {
  DataSplit split;
  std::function<std::unique_ptr<DataFlow<Batch>>(Share share)> start;
};

/// Returns the share of this rank.
inline Share share_of(const Cluster& cluster) { return {cluster.rank(), cluster.size()}; }

struct DetectorScores {
  coco::Evaluation boxes;
  std::optional<coco::Evaluation> masks;       // nullopt if the model gives no masks
  std::optional<coco::Evaluation> boundaries;  // scores of masks and their boundaries, if requested
  /// Scores of proposals, all classes as one, if requested.
  std::optional<coco::Evaluation> proposals;
  coco::Detections detections;         // detections, if keep_detections is set
  coco::LimitCost limit;               // effect of the limit of detections on the boxes
  std::int64_t images = 0, found = 0;  // number of images evaluated and of objects found
  double seconds = 0;
};

struct EvaluationRun {
  std::int64_t max_images = 0;       // number of images, the first of the split by id; 0 = all
  bool keep_detections = false;      // true = keep the detections for a results file
  std::uint32_t max_detections = 0;  // limit of detections, see coco::options_for; 0 = the default
  bool boundary = false;             // true = also score the boundaries of masks
  bool proposals = false;            // true = also score proposals; the detector must return notes
  PassWatch watch = {};
  /// Called after each batch with the boxes that this rank has matched so far.
  std::function<void(const coco::Evaluator& boxes)> so_far = [](const auto&) {};
};

/// Detects over a pass, each rank in its share, and scores boxes and masks on rank 0; the other
/// ranks get empty scores. Uses LVIS's rules if the split is federated (coco::is_federated), else
/// COCO's. Images that could not be read count as images without detections. nullopt if any rank
/// was cancelled. Throws Error for an image that occurs twice or is not in the split.
std::optional<DetectorScores> evaluate_detector(Detector& detector, const EvalData& data,
                                                const EvaluationRun& run = {},
                                                const Cluster& cluster = Cluster::alone());

/// Returns the effect of the limit of detections on the best possible AP, for the part of the split
/// that a run scores.
coco::LimitCost limit_cost(const DataSplit& split, const EvaluationRun& run);

/// Returns the JSON of the metrics and the number of images, for `trainer eval --json` and scores/.
nlohmann::ordered_json scores_json(const DetectorScores& scores);

/// Returns the JSON of `cost` for `trainer eval --json`.
nlohmann::ordered_json limit_json(const coco::LimitCost& cost);

/// Converts an object to the form of COCO's results files. Throws Error for a label without a
/// category.
coco::Detection as_coco(DetectedObject object, std::int64_t image_id,
                        const std::vector<std::int64_t>& category_ids);

/// Returns the scores as "bbox/AP", "bbox/AP50", ..., "segm/AP", ..., "boundary/AP", ...,
/// "proposals/AR@100", ...
Scalars named_scores(const DetectorScores& scores);

/// Returns the recalls of the proposals if they were scored: "AR@100", "AR@300", "AR@1000", and
/// "ARs@1000", "ARm@1000", "ARl@1000" for small, medium and large objects.
Scalars proposal_recalls(const DetectorScores& scores);

/// Return the names of all scores of boxes and masks (by COCO's or LVIS's rules), of boundaries,
/// and of proposals. `max_detections`: see EvaluationRun.
std::vector<std::string> score_names(bool federated, std::uint32_t max_detections = 0);
std::vector<std::string> boundary_score_names(bool federated, std::uint32_t max_detections = 0);
std::vector<std::string> proposal_score_names();

/// Formats the six AP of boxes and masks in three lines; "-" = there are no objects of that size.
std::string score_summary(const Scalars& named);

/// Formats the tables like pycocotools or lvis-api.
std::string score_tables(const DetectorScores& scores);

}  // namespace millrace
