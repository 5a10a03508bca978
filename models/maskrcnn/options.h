// The options of two-stage detectors: every number that changes a result. The defaults are
// detectron2's 1x recipe; `style` selects another published set, and each option can be set
// individually.
#pragma once

#include <cstdint>

#include "millrace/models/maskrcnn/box_stages.h"
#include "millrace/models/maskrcnn/mask_head.h"
#include "millrace/models/maskrcnn/regions.h"
#include "millrace/models/maskrcnn/rpn.h"
#include "millrace/models/pyramid_detector.h"

namespace millrace {

struct MaskRcnnOptions : PyramidDetectorOptions {
  bool masks = true;
  Background background = Background::last;
  RpnOptions rpn;
  PoolOptions pool;
  BoxStagesOptions box_stages;
  MaskHeadOptions mask_head;

  void describe(Options& o);
  void use_torchvision();

  /// With backbone.out = "c4", takes the defaults of detectron2's Base-RCNN-C4.
  void adapt_to(const Config& table);

  void check(const Config& table, const Options& defaults) const;

  /// The offset from a label to its index among the heads' classes.
  std::int64_t first_class() const { return background == Background::first ? 1 : 0; }

  /// The stride in pixels of the first map that has anchors.
  std::int64_t finest_stride() const { return pyramid.has_pyramid() ? 4 : 16; }
};

/// Mask R-CNN without masks.
struct FasterRcnnOptions : MaskRcnnOptions {
  FasterRcnnOptions() { masks = false; }
};

/// Three stages with the published thresholds and weights.
struct CascadeRcnnOptions : MaskRcnnOptions {
  CascadeRcnnOptions();
};

}  // namespace millrace
