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
  rpn.use_torchvision();
  pool.use_torchvision();
  box_stages.use_torchvision();
  mask_head.use_torchvision();
  detection.min_side = 1e-2;
}

void MaskRcnnOptions::check(const Config& table) const {
  PyramidDetectorOptions::check(table);
  rpn.check(table);
  box_stages.check(table);
}

RegionLoad MaskRcnnOptions::regions_of_an_image() const {
  const auto cells = [](std::int64_t side) { return static_cast<double>(side * side); };
  const auto sampled = static_cast<double>(box_stages.batch);
  return {.boxes = sampled,
          .box_cells = cells(box_stages.head.size),
          .masks = masks ? box_stages.positive * sampled : 0,
          .mask_cells = cells(mask_head.size)};
}

std::vector<IdleOption> MaskRcnnOptions::idle() const {
  return together(PyramidDetectorOptions::idle(), box_stages.head.idle());
}

CascadeRcnnOptions::CascadeRcnnOptions() {
  masks = false;
  rpn.post_nms_train = 2000;
  box_stages.iou = {0.5, 0.6, 0.7};
  box_stages.weights = {10, 10, 5, 5, 20, 20, 10, 10, 30, 30, 15, 15};
  box_stages.head.class_agnostic = true;
}

}  // namespace millrace
