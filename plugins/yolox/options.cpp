#include "options.h"

#include <cstddef>

namespace millrace::yolox {
namespace {

struct Scale {
  double depth, width;
  bool depthwise = false;
};

constexpr Scale kScales[] = {  // indexed by NetworkSize
    {0.33, 0.25, true}, {0.33, 0.375}, {0.33, 0.5}, {0.67, 0.75}, {1, 1}, {1.33, 1.25}};

}  // namespace

void YoloxOptions::use(NetworkSize published) {
  const auto& scale = kScales[static_cast<std::size_t>(published)];
  size = published;
  depth = scale.depth;
  width = scale.width;
  depthwise = scale.depthwise;
}

void YoloxOptions::describe(Options& o) {
  o.add("size", size, "the published network that depth, width and depthwise start from");
  o.add("depth", depth, "factor of the number of bottlenecks, 3, 9, 9 and 3",
        {.min = 0.01, .max = 10})
      .decides(OfWeights::tensors);
  o.add("width", width, "factor of the channels, 64 .. 1024", {.min = 0.0625, .max = 10})
      .decides(OfWeights::tensors);
  o.add("depthwise", depthwise, "3x3 convolutions are depthwise, followed by a pointwise one")
      .decides(OfWeights::tensors);
  o.add("norm", norm, "batch norm over the images of one rank, or of all",
        {Norm::bn, Norm::sync_bn});
  o.add("random_size", random_size,
        "[least, greatest] height that a training batch is resized to, in 32 pixels, another every "
        "10 steps; none: batches stay as they are",
        {.min = 1, .max = 256});
  o.add("l1_from", l1_from,
        "epoch from which the L1 loss of the boxes is added; negative: it never is");
  o.add("test.score_thresh", score_thresh, "detections must reach it", {.min = 0, .max = 1});
  o.add("test.nms_thresh", nms_thresh, "IoU of the detections' NMS", {.min = 0, .max = 1});
  o.add("test.detections_per_img", detections_per_img, "maximum per image", {.min = 1, .max = 1e5});
  o.add("test.boxes", boxes,
        "boxes in the original image: each side by its own scale, clipped (exact); or both by one "
        "scale, unclipped, as the published figures (uniform)");
}

void YoloxOptions::check(const Config& table) const {
  require(table, "random_size",
          random_size.empty() || (random_size.size() == 2 && random_size[0] <= random_size[1]),
          "takes the least and the greatest size, such as [14, 26]");
}

}  // namespace millrace::yolox
