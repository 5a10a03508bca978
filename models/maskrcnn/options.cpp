#include "millrace/models/maskrcnn/options.h"

#include <string>
#include <variant>

namespace millrace {

void MaskRcnnOptions::describe(Options& o) {
  PyramidDetectorOptions::describe(o);
  o.add("backbone.out", pyramid.out,
        "input of the heads: fpn = a feature pyramid; c4 = the map of stride 16, whose regions "
        "pass through the last stage")
      .affects(WeightEffect::tensors);
  o.add("masks", masks, "also predict a mask for each object");
  rpn.describe(o);
  pool.describe(o);
  box_stages.describe(o);
  o.add("background", background, "position of the background class",
        {Background::last, Background::first});
  mask_head.describe(o);
}

void MaskRcnnOptions::use_torchvision() {
  PyramidDetectorOptions::use_torchvision();
  background = Background::first;
  rpn.anchors.use_torchvision();
  rpn.smooth_l1_beta = 1.0 / 9;
  rpn.loss_normalizer = RpnOptions::Normalizer::sampled;
  rpn.post_nms_top_n_train = 2000;
  rpn.rank_by = RpnOptions::RankBy::probability;
  rpn.min_size = 1e-3;
  pool.sampling_ratio = 2;
  pool.aligned = false;
  pool.level_eps = 0;
  pool.level_eps_after_log = 1e-6;
  box_stages.head.loss.smooth_l1_beta = 1.0 / 9;
  mask_head.init_std = 0;
  mask_head.target = MaskTarget::soft;
  mask_head.paste = MaskPaste::padded;
  detection.min_size = 1e-2;
}

void MaskRcnnOptions::adapt_to(const Config& table) {
  const auto* out = table.find_path("backbone.out");
  const auto* name = out ? std::get_if<std::string>(&out->data) : nullptr;
  if (!name || named_value<BackboneOut>(*name) != BackboneOut::c4) return;
  pyramid.out = BackboneOut::c4;
  rpn.anchors.one_map = true;
  rpn.pre_nms_top_n_train = 12000;
  rpn.pre_nms_top_n_test = 6000;
  rpn.post_nms_top_n_train = 2000;
  box_stages.head.type = BoxHeadType::mean;
  box_stages.head.pooler_resolution = 14;
  mask_head.num_convs = 0;
}

void MaskRcnnOptions::check(const Config& table, const Options& defaults) const {
  PyramidDetectorOptions::check(table, defaults);
  rpn.check(table);
  box_stages.check(table, defaults);
  if (pyramid.has_pyramid()) return;
  require(table, "backbone.out", !pyramid.is_hrnet(),
          "must be \"fpn\" with an HRNet, which has no last stage for regions");
  require(table, "backbone.out", box_stages.fg_iou_thresh.size() == 1,
          "must be \"fpn\" for a cascade (several numbers in roi.fg_iou_thresh), whose stages "
          "would share the backbone's last stage");
  const auto why = "with backbone.out = \"c4\", which has ";
  defaults.refuse_unused(
      table,
      {"fpn.out_channels", "roi.level_eps", "roi.level_eps_after_log", "roi.canonical_box_size"},
      std::string(why) + "no pyramid");
  require(table, "mask.pooler_resolution",
          !masks || mask_head.pooler_resolution == box_stages.head.pooler_resolution,
          "must be box.pooler_resolution with backbone.out = \"c4\", whose heads share regions");
  if (!masks || mask_head.num_convs == 0)
    defaults.refuse_unused(table, {"fpn.norm"},
                           std::string(why) + "no pyramid, and no convolutions of a mask head");
}

CascadeRcnnOptions::CascadeRcnnOptions() {
  masks = false;
  rpn.post_nms_top_n_train = 2000;
  box_stages.fg_iou_thresh = {0.5, 0.6, 0.7};
  box_stages.bbox_reg_weights = {10, 10, 5, 5, 20, 20, 10, 10, 30, 30, 15, 15};
  box_stages.head.cls_agnostic_bbox_reg = true;
}

}  // namespace millrace
