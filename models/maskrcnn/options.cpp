#include "models/maskrcnn/options.h"

#include "models/layers/style.h"

namespace millrace {

void MaskRcnnOptions::describe(Options& o) {
  add_style(o, style);
  o.add("masks", masks, "false: Faster R-CNN, boxes only");
  pyramid.describe(o);
  boxes.describe(o);
  rpn.describe(o);
  pool.describe(o);
  box_stages.describe(o);
  o.add("background", background, "place of the background class", {"last", "first"});
  mask_head.describe(o);
  detection.describe(o);
}

MaskRcnnOptions MaskRcnnOptions::defaults_for(const Config& table) {
  MaskRcnnOptions options;
  if (!wants_torchvision(table)) return options;
  options.style = "torchvision";
  options.background = "first";
  options.pyramid.use_torchvision();
  options.rpn.use_torchvision();
  options.pool.use_torchvision();
  options.box_stages.use_torchvision();
  options.mask_head.use_torchvision();
  options.detection.use_torchvision();
  return options;
}

}  // namespace millrace
