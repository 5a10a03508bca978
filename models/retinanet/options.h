// Every number of RetinaNet that changes a result. Defaults are detectron2's (except its running
// mean of the number of foreground anchors); `style = "torchvision"` picks the other published set.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/layers/anchors.h"
#include "millrace/models/layers/losses.h"
#include "millrace/models/ops/focal_loss.h"
#include "millrace/models/pyramid_detector.h"

namespace millrace {

struct RetinaNetOptions : PyramidDetectorOptions {
  std::string background = "none";
  std::string p6_from = "c5";
  PyramidAnchors anchors{.scales_per_octave = 3};
  double fg_iou_thresh = 0.5, bg_iou_thresh = 0.4;
  std::int64_t num_convs = 4;
  std::string norm = "none";
  double prior_prob = 0.01;
  FocalOptions focal;
  BoxLoss loss;
  std::string loss_normalizer = "batch";
  std::int64_t topk_candidates = 1000;

  void describe(Options& o);
  void use_torchvision();
  void check(const Config& table, const Options& defaults) const;

  FpnTop top() const { return p6_from == "c5" ? FpnTop::c5 : FpnTop::p5; }
};

}  // namespace millrace
