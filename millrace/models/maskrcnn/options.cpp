#include "millrace/models/maskrcnn/options.h"

namespace millrace {

void MaskRcnnOptions::describe(Options& o) {
  PyramidDetectorOptions::describe(o);
  o.add("masks", masks, "also find the shape of each object");
  rpn.describe(o);
  pool.describe(o);
  box_stages.describe(o);
  o.add("background", background, "place of the background class", {"last", "first"});
  mask_head.describe(o);
}

void MaskRcnnOptions::use_torchvision() {
  PyramidDetectorOptions::use_torchvision();
  background = "first";
  rpn.anchors.use_torchvision();
  rpn.beta = 1.0 / 9;
  rpn.normalizer = "sampled";
  rpn.post_nms_train = 2000;
  rpn.rank = "probability";
  rpn.min_side = 1e-3;
  pool.sampling_ratio = 2;
  pool.aligned = false;
  pool.level_epsilon = 0;
  pool.level_epsilon_after_log = 1e-6;
  box_stages.head.loss.beta = 1.0 / 9;
  mask_head.init = 0;
  mask_head.target = "soft";
  mask_head.paste = "padded";
  detection.min_side = 1e-2;
}

void MaskRcnnOptions::check(const Config& table, const Options& defaults) const {
  PyramidDetectorOptions::check(table, defaults);
  rpn.check(table);
  box_stages.check(table, defaults);
}

CascadeRcnnOptions::CascadeRcnnOptions() {
  masks = false;
  rpn.post_nms_train = 2000;
  box_stages.iou = {0.5, 0.6, 0.7};
  box_stages.weights = {10, 10, 5, 5, 20, 20, 10, 10, 30, 30, 15, 15};
  box_stages.head.class_agnostic = true;
}

}  // namespace millrace
