// The options of RetinaNet: every number that changes a result. The defaults are detectron2's
// (except its running mean of the number of foreground anchors); `style = "torchvision"` selects
// the other published set.
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
  /// The group of images whose foreground anchors divide the losses.
  enum class Normalizer { batch, image };
  friend std::vector<std::string> value_names(Normalizer) { return {"batch", "image"}; }

  Background background = Background::none;
  FpnTop p6_from = FpnTop::c5;
  PyramidAnchors anchors{.scales_per_octave = 3};
  double fg_iou_thresh = 0.5, bg_iou_thresh = 0.4;
  std::int64_t num_convs = 4;
  Norm norm = Norm::none;
  double prior_prob = 0.01;
  FocalOptions focal;
  BoxLoss loss;
  Normalizer loss_normalizer = Normalizer::batch;
  std::int64_t topk_candidates = 1000;

  void describe(Options& o);
  void use_torchvision();
  void check(const Config& table, const Options& defaults) const;
};

}  // namespace millrace
