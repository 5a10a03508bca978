#include "millrace/models/retinanet/options.h"

namespace millrace {

void RetinaNetOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1};
  PyramidDetectorOptions::describe(o);
  o.add("background", background,
        "place of an unused background class: none, or first (torchvision)",
        {Background::none, Background::first})
      .affects(WeightEffect::tensors);
  o.add("fpn.p6_from", p6_from, "feature map from which P6 is computed", {FpnTop::c5, FpnTop::p5})
      .affects(WeightEffect::meaning);
  anchors.describe(o);
  o.add("head.fg_iou_thresh", fg_iou_thresh, "IoU from which an anchor is foreground", share);
  o.add("head.bg_iou_thresh", bg_iou_thresh, "IoU below which an anchor is background", share);
  o.add("head.num_convs", num_convs, "3x3 convolutions of each of the two heads",
        {.min = 0, .max = 16})
      .affects(WeightEffect::tensors);
  o.add("head.norm", norm, "normalisation of the heads' convolutions", {Norm::none, Norm::gn})
      .affects(WeightEffect::tensors);
  o.add("head.prior_prob", prior_prob, "initial probability of every class",
        {.min = 1e-6, .max = 0.5});
  o.add("head.focal_loss_alpha", focal.alpha, "weight of foreground in the focal loss", share);
  o.add("head.focal_loss_gamma", focal.gamma,
        "exponent of the focal loss; larger values reduce the weight of easy examples",
        {.min = 0, .max = 10});
  o.add("head.bbox_reg_loss_type", loss.bbox_reg_loss_type,
        "box loss: smooth_l1 of the deltas, or giou of the boxes");
  o.add("head.smooth_l1_beta", loss.smooth_l1_beta, "smooth-L1 beta of the boxes; 0 = L1",
        {.min = 0});
  o.add("head.loss_normalizer", loss_normalizer,
        "divisor of the losses: foreground anchors of the batch, or of each image");
  o.add("test.topk_candidates", topk_candidates,
        "maximum number of class scores per level passed to NMS", {.min = 1, .max = 1e6});
}

void RetinaNetOptions::use_torchvision() {
  PyramidDetectorOptions::use_torchvision();
  background = Background::first;
  p6_from = FpnTop::p5;
  anchors.use_torchvision();
  loss_normalizer = Normalizer::image;
  detection.detections_per_img = 300;
}

void RetinaNetOptions::check(const Config& table, const Options& defaults) const {
  PyramidDetectorOptions::check(table, defaults);
  anchors.check(table);
  require(table, "head.bg_iou_thresh", bg_iou_thresh <= fg_iou_thresh,
          "must not exceed head.fg_iou_thresh");
  if (pyramid.is_hrnet())
    defaults.refuse_unused(table, {"fpn.p6_from"},
                           "with an HRNet, whose levels are computed from one map");
  if (num_convs == 0) defaults.refuse_unused(table, {"head.norm"}, "with head.num_convs = 0");
  if (loss.bbox_reg_loss_type == BoxLossType::giou)
    defaults.refuse_unused(table, {"head.smooth_l1_beta"},
                           "with head.bbox_reg_loss_type = \"giou\"");
}

}  // namespace millrace
