// A detector over the validation split, scored by COCO's rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/engine/dataflow.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/detector.h"
#include "millrace/trainer/metrics.h"
#include "millrace/trainer/validation_pass.h"

namespace millrace {

/// The validation split: each call of `start` is a fresh pass that gives each image of a share
/// once, by ascending id. Any thread may call it.
struct EvalData {
  DataSplit split;
  std::function<std::unique_ptr<DataFlow<Batch>>(Share share)> start;
};

/// The share of this rank.
inline Share share_of(const Cluster& cluster) { return {cluster.rank(), cluster.size()}; }

struct DetectorScores {
  coco::Evaluation boxes;
  std::optional<coco::Evaluation> masks;  // nothing where the model gives no masks
  coco::Detections detections;            // of every image, where they were to be kept
  std::int64_t images = 0;                // that were looked at
  std::int64_t found = 0;                 // objects
  double seconds = 0;
};

struct EvaluationRun {
  std::int64_t max_images = 0;   // of the split, by ascending id; 0: all
  bool keep_detections = false;  // for a results file
  PassWatch watch = {};
};

/// Detects over a fresh pass, each rank in its share, and scores boxes and masks on the chief.
/// Images that could not be read count as without detections. Nothing where it was cancelled on any
/// rank; of ranks that are not the chief empty scores. Throws Error for an image that comes twice
/// or that the split lacks.
std::optional<DetectorScores> evaluate_detector(Detector& detector, const EvalData& data,
                                                const EvaluationRun& run = {},
                                                const Cluster& cluster = Cluster::alone());

/// What was found in an image as COCO's results files have it. Throws Error for a label without a
/// category.
coco::Detection as_coco(DetectedObject object, std::int64_t image_id,
                        const std::vector<std::int64_t>& category_ids);

/// The figures under their names: "bbox/AP", "bbox/AP50", ..., "segm/AP", ...
Scalars named_scores(const DetectorScores& scores);

/// All of these names.
std::vector<std::string> score_names();

/// Both tables, as pycocotools prints them.
std::string score_tables(const DetectorScores& scores);

}  // namespace millrace
