// Every number of a two-stage detector that changes a result. Defaults are detectron2's 1x recipe;
// `style` picks another published set, and each switch may still be set alone.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/models/layers/model_options.h"
#include "millrace/models/maskrcnn/box_stages.h"
#include "millrace/models/maskrcnn/mask_head.h"
#include "millrace/models/maskrcnn/regions.h"
#include "millrace/models/maskrcnn/rpn.h"
#include "millrace/models/pyramid_detector.h"

namespace millrace {

struct MaskRcnnOptions : PyramidDetectorOptions {
  bool masks = true;
  std::string background = "last";
  RpnOptions rpn;
  PoolOptions pool;
  BoxStagesOptions box_stages;
  MaskHeadOptions mask_head;

  void describe(Options& o);
  void use_torchvision();
  void check(const Config& table) const;
  std::vector<IdleOption> idle() const;

  static MaskRcnnOptions defaults_for(const Config& table) {
    return defaults_in_style<MaskRcnnOptions>(table);
  }

  /// At most: as many regions as are sampled, and masks for those in the foreground.
  RegionLoad regions_of_an_image() const;

  /// What the heads add to a label to get its place among the classes.
  std::int64_t first_class() const { return background == "first" ? 1 : 0; }
};

/// The same without masks.
struct FasterRcnnOptions : MaskRcnnOptions {
  FasterRcnnOptions() { masks = false; }
  static FasterRcnnOptions defaults_for(const Config& table) {
    return defaults_in_style<FasterRcnnOptions>(table);
  }
};

/// Three stages with the published thresholds and weights.
struct CascadeRcnnOptions : MaskRcnnOptions {
  CascadeRcnnOptions();
  static CascadeRcnnOptions defaults_for(const Config& table) {
    return defaults_in_style<CascadeRcnnOptions>(table);
  }
};

}  // namespace millrace
