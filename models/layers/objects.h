// The objects of an image: its ground truth, and the best of what heads propose. Shapes: G objects,
// D detections.
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
  at::Tensor boxes;                                      // (G, 4) network pixels
  at::Tensor labels;                                     // (G) int64, 0 .. classes - 1
  std::vector<const coco::Segmentation*> segmentations;  // (G) borrowed from the batch
  double height = 0, width = 0;                          // true size of the image, network pixels
  std::shared_ptr<const TruthPack> pack;                 // of all images of the batch, if known
};

/// The ground truth of each image, in one copy to the device. It borrows from the batch.
std::vector<Truth> truths_of(const Batch& batch, at::Device device = at::kCPU);

/// What happens to a detection that overlaps a better one.
enum class NmsType {
  hard,      // it goes
  linear,    // it loses score by the overlap (soft-NMS, Bodla et al. 2017)
  gaussian,  // the same, by a gaussian of it
};
inline std::vector<std::string> value_names(NmsType) { return {"hard", "linear", "gaussian"}; }

/// [model.test].
struct DetectionOptions {
  double score_thresh = 0.05;
  double nms_thresh = 0.5;
  NmsType nms_type = NmsType::hard;
  double soft_nms_sigma = 0.5;
  std::int64_t detections_per_img = 100;
  double min_size = 0;
  std::vector<double> aug_scales = {
      1};  // test-time augmentation: what is found in all views is merged
  bool aug_flip = false;

  void describe(Options& o);
  void check(const Config& table, const Options& defaults) const;
};

/// True (height, width) of an image in the network's pixels.
using ImageSize = std::pair<double, double>;

/// What was found in one image, best first.
struct Found {
  at::Tensor boxes;   // (D, 4) network pixels
  at::Tensor scores;  // (D)
  at::Tensor labels;  // (D) int64, 0 .. classes - 1
};

/// The same in a graph, of N images with M places each. A negative score: there is no object.
struct FoundNodes {
  onnx::Value boxes;   // (N, M, 4)
  onnx::Value scores;  // (N, M)
  onnx::Value labels;  // (N, M) int64
};

/// Cuts candidate boxes to the image, drops those that are not finite or too small, suppresses
/// within each class by the options' kind of NMS (`offset` as in batched_nms) and keeps the best.
/// Candidates come in any order; of equal scores the first counts as the better one.
Found best_detections(const Found& candidates, const ImageSize& size, double offset,
                      const DetectionOptions& options);

/// The same in a graph, of labels below `classes`; `limits` (N, 4): width, height, width, height.
/// Throws Error for soft-NMS.
FoundNodes best_detections(const FoundNodes& candidates, const onnx::Value& limits, double offset,
                           std::int64_t classes, const DetectionOptions& options);

/// Throws Error, as ONNX has no operator for it.
void refuse_soft_nms(const DetectionOptions& options);

/// Its parts, for candidates laid out in another way: the scores where the boxes cut to `limits`
/// are large enough, else -1; and the best places (N, options.detections_per_img at most) among
/// those of `scores` (N, C) that `kept` (S, 2) names, with their scores, -1 where there are no
/// more.
onnx::Value scores_of_good(const onnx::Value& boxes, const onnx::Value& scores,
                           const DetectionOptions& options);
std::pair<onnx::Value, onnx::Value> best_of_kept(const onnx::Value& scores, const onnx::Value& kept,
                                                 std::int64_t most);

}  // namespace millrace
