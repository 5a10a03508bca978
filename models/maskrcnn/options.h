// Every number of a two-stage detector that changes a result. Defaults are detectron2's 1x recipe; `style` picks
// another published set, and each switch may still be set alone.
#pragma once

#include <cstdint>
#include <string>

#include "models/backbones/pyramid.h"
#include "models/layers/detections.h"
#include "models/maskrcnn/box_stages.h"
#include "models/maskrcnn/mask_head.h"
#include "models/maskrcnn/regions.h"
#include "models/maskrcnn/rpn.h"

namespace millrace {

struct MaskRcnnOptions {
  std::string style = "detectron2";
  bool masks = true;
  std::string background = "last";
  PyramidOptions pyramid;
  BoxOptions boxes;
  RpnOptions rpn;
  PoolOptions pool;
  BoxStagesOptions box_stages;
  MaskHeadOptions mask_head;
  DetectionOptions detection;

  void describe(Options& o);

  /// The defaults of the table's `style`.
  static MaskRcnnOptions defaults_for(const Config& table);

  /// What the heads add to a label to get its place among the classes.
  std::int64_t first_class() const { return background == "first" ? 1 : 0; }
};

}  // namespace millrace
