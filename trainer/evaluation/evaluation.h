// Scores a detector over the validation split by COCO's rules.
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

/// The validation split. `start` begins a pass over a share of its images, by ascending id. For any
/// thread.
struct EvalData {
  DataSplit split;
  std::function<std::unique_ptr<DataFlow<Batch>>(Share share)> start;
};

/// The share of this rank.
inline Share share_of(const Cluster& cluster) { return {cluster.rank(), cluster.size()}; }

struct DetectorScores {
  coco::Evaluation boxes;
  std::optional<coco::Evaluation> masks;       // nothing: the model gives no masks
  std::optional<coco::Evaluation> boundaries;  // if asked for: of masks and their boundaries
  std::optional<coco::Evaluation> proposals;   // if asked for: of all classes as one
  coco::Detections detections;                 // if they were to be kept
  coco::LimitCost limit;                       // of the boxes
  std::int64_t images = 0, found = 0;          // images seen, objects found
  double seconds = 0;
};

struct EvaluationRun {
  std::int64_t max_images = 0;       // of the split, by ascending id; 0: all
  bool keep_detections = false;      // for a results file
  std::uint32_t max_detections = 0;  // as coco::options_for; 0: the usual
  bool boundary = false;             // also score masks by their boundaries
  bool proposals = false;            // also score these; the detector must give notes
  PassWatch watch = {};
  /// Called after each batch with the boxes that this rank matched so far.
  std::function<void(const coco::Evaluator& boxes)> so_far = [](const auto&) {};
};

/// Detects over a pass, each rank in its share, and scores boxes and masks on the chief, by LVIS's
/// rules where the split is federated (coco::is_federated), else by COCO's; other
/// ranks get empty scores. Images that could not be read count as without detections. Nothing if it
/// was cancelled on any rank. Throws Error for an image that comes twice or that the split lacks.
std::optional<DetectorScores> evaluate_detector(Detector& detector, const EvalData& data,
                                                const EvaluationRun& run = {},
                                                const Cluster& cluster = Cluster::alone());

/// What the limit of detections costs on the part of the split that a run scores.
coco::LimitCost limit_cost(const DataSplit& split, const EvaluationRun& run);

/// The cost of the limit as `trainer eval --json` has it.
nlohmann::ordered_json limit_json(const coco::LimitCost& cost);

/// An object in the form of COCO's results files. Throws Error for a label without a category.
coco::Detection as_coco(DetectedObject object, std::int64_t image_id,
                        const std::vector<std::int64_t>& category_ids);

/// "bbox/AP", "bbox/AP50", ..., "segm/AP", ..., "boundary/AP", ..., "proposals/AR@100", ...
Scalars named_scores(const DetectorScores& scores);

/// Of the proposals, if they were scored: "AR@100", "AR@300", "AR@1000", and those of 1000 for
/// small, medium and large objects, "ARs@1000" ...
Scalars proposal_recalls(const DetectorScores& scores);

/// All names of scores of boxes and masks, by COCO's or LVIS's rules; those of boundaries and of
/// proposals. `max_detections` as in EvaluationRun.
std::vector<std::string> score_names(bool federated, std::uint32_t max_detections = 0);
std::vector<std::string> boundary_score_names(bool federated, std::uint32_t max_detections = 0);
std::vector<std::string> proposal_score_names();

/// The six AP of boxes and masks in three lines, from named scores; "-": there are no such objects.
std::string score_summary(const Scalars& named);

/// The tables, as pycocotools or lvis-api prints them.
std::string score_tables(const DetectorScores& scores);

}  // namespace millrace
