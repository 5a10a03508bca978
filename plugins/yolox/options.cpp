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
  o.add("size", size, "published network that sets the defaults of depth, width and depthwise");
  o.add("depth", depth, "multiplier of the number of bottlenecks (3, 9, 9 and 3)",
        {.min = 0.01, .max = 10})
      .affects(WeightEffect::tensors);
  o.add("width", width, "multiplier of the channels (64 to 1024)", {.min = 0.0625, .max = 10})
      .affects(WeightEffect::tensors);
  o.add("depthwise", depthwise, "use depthwise separable 3x3 convolutions")
      .affects(WeightEffect::tensors);
  o.add("norm", norm, "batch norm over the images of one rank (bn) or of all ranks (sync_bn)",
        {Norm::bn, Norm::sync_bn});
  o.add("random_size", random_size,
        "[minimum, maximum] training height in units of 32 pixels, drawn anew every 10 steps; "
        "empty = no resizing",
        {.min = 1, .max = 256});
  o.add("l1_from", l1_from, "first epoch with the L1 box loss; negative = never");
  o.add("test.score_thresh", score_thresh, "minimum score of detections, inclusive",
        {.min = 0, .max = 1});
  o.add("test.nms_thresh", nms_thresh, "IoU threshold of NMS", {.min = 0, .max = 1});
  o.add("test.detections_per_img", detections_per_img, "maximum number of detections per image",
        {.min = 1, .max = 1e5});
  o.add("test.boxes", boxes,
        "mapping of boxes to the original image: each side by its own scale, clipped (exact), or "
        "both by one scale, unclipped, as in the published results (uniform)");
}

void YoloxOptions::check(const Config& table) const {
  require(table, "random_size",
          random_size.empty() || (random_size.size() == 2 && random_size[0] <= random_size[1]),
          "must be [minimum, maximum], e.g. [14, 26]");
}

}  // namespace millrace::yolox
