// The objects of an image: its ground truth, and the best detections of the heads. Shapes: G
// objects, D detections.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/onnx/graph.h"

namespace millrace {

struct TruthPack;  // truth_pack.h

/// One image's ground truth without crowd regions.
struct Truth {
  at::Tensor boxes;                                      // (G, 4) in network pixels
  at::Tensor labels;                                     // (G) int64, 0 .. classes - 1
  std::vector<const coco::Segmentation*> segmentations;  // (G) borrowed from the batch
  double height = 0, width = 0;                          // unpadded size in network pixels
  std::shared_ptr<const TruthPack> pack;                 // tables of the whole batch, if present
};

/// Returns the ground truth of each image, copied to the device at once. It borrows from the batch.
std::vector<Truth> truths_of(const Batch& batch, at::Device device = at::kCPU);

/// The treatment of a detection that overlaps a better one.
enum class NmsType {
  hard,      // it is dropped
  linear,    // its score drops by the overlap (soft-NMS, Bodla et al. 2017)
  gaussian,  // its score drops by a gaussian of the overlap
};
inline std::vector<std::string> value_names(NmsType) { return {"hard", "linear", "gaussian"}; }

/// The options of [model.test].
struct DetectionOptions {
  double score_thresh = 0.05;
  double nms_thresh = 0.5;
  NmsType nms_type = NmsType::hard;
  double soft_nms_sigma = 0.5;
  std::int64_t detections_per_img = 100;
  double min_size = 0;
  std::vector<double> aug_scales = {1};  // test-time augmentation: merges detections at all scales
  bool aug_flip = false;

  void describe(Options& o);
  void check(const Config& table, const Options& defaults) const;
};

/// Unpadded (height, width) of an image in network pixels.
using ImageSize = std::pair<double, double>;

/// The detections in an image, best first.
struct Found {
  at::Tensor boxes;   // (D, 4) in network pixels
  at::Tensor scores;  // (D)
  at::Tensor labels;  // (D) int64, 0 .. classes - 1
};

/// Detections in a graph: N images with M slots each. A negative score marks an empty slot.
struct FoundNodes {
  onnx::Value boxes;   // (N, M, 4)
  onnx::Value scores;  // (N, M)
  onnx::Value labels;  // (N, M) int64
};

/// Clips candidate boxes to the image, drops those that are not finite or too small, runs the
/// configured NMS within each class (`offset` as in batched_nms) and keeps the best. Candidates may
/// be in any order; of equal scores the first is better.
Found best_detections(const Found& candidates, const ImageSize& size, double offset,
                      const DetectionOptions& options);

/// Adds the nodes of best_detections, with labels below `classes`; `limits` (N, 4): width, height,
/// width, height. Throws Error for soft-NMS.
FoundNodes best_detections(const FoundNodes& candidates, const onnx::Value& limits, double offset,
                           std::int64_t classes, const DetectionOptions& options);

/// Throws Error for soft-NMS, for which ONNX has no operator.
void refuse_soft_nms(const DetectionOptions& options);

/// Parts of best_detections, for candidates in another layout. mask_small_boxes returns the scores
/// of boxes (clipped to their images) that are large enough, else -1. top_kept returns the scores
/// and indices of the best of `scores` (N, C) that `kept` (S, 2) lists, at most `most` per image,
/// padded with -1.
onnx::Value mask_small_boxes(const onnx::Value& boxes, const onnx::Value& scores,
                             const DetectionOptions& options);
std::pair<onnx::Value, onnx::Value> top_kept(const onnx::Value& scores, const onnx::Value& kept,
                                             std::int64_t most);

}  // namespace millrace
