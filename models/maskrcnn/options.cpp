#include "models/maskrcnn/options.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/errors.h"

namespace millrace {

void MaskRcnnOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1}, count{.min = 1}, pixels{.min = 0, .unit = "px"};
  o.add("style", style, "named set of numeric switches that the other options start from",
        {"detectron2", "torchvision"});
  o.add("masks", masks, "false: Faster R-CNN, boxes only");

  o.add("pixel_order", pixel_order, "order of the input's channels", {"rgb", "bgr"});
  o.add("pixel_mean", pixel_mean, "subtracted from each channel, in pixel_order");
  o.add("pixel_std", pixel_std, "each channel is divided by it, in pixel_order", {.min = 1e-6});

  o.add("backbone", backbone, "the residual network",
        {"resnet18", "resnet34", "resnet50", "resnet101"});
  o.add("width", width, "channels of the first stage; 64 is the published network",
        {.min = 4, .max = 1024});
  o.add("norm", norm, "normalisation of the backbone",
        {"frozen_bn", "frozen_stats", "bn", "gn", "none"});
  o.add("norm_epsilon", norm_epsilon, "added to variances", {.min = 0, .max = 1});
  o.add("freeze_at", freeze_at, "stages not trained: 1 the stem, 2 also C2, ...; 0 none",
        {.min = 0, .max = 5});
  o.add("stride_in_1x1", stride_in_1x1, "bottlenecks stride in the 1x1 (MSRA) instead of the 3x3");
  o.add("zero_init_residual", zero_init_residual, "norms that end a residual branch start at 0");
  o.add("fpn_channels", fpn_channels, "channels of P2..P6 and of the RPN", {.min = 8, .max = 4096});
  o.add("fpn_norm", fpn_norm, "normalisation of the pyramid and the mask head",
        {"none", "gn", "bn"});

  o.add("anchor_sizes", anchor_sizes, "square root of the anchors' area on P2..P6",
        {.min = 1, .unit = "px"});
  o.add("anchor_ratios", anchor_ratios, "height / width", {.min = 0.01, .max = 100});
  o.add("anchor_cells", anchor_cells,
        "exact | rounded to integers (torchvision) | legacy quantised",
        {"exact", "rounded", "legacy"});
  o.add("anchor_stride", anchor_stride, "of the level, or padded size // grid (torchvision)",
        {"level", "grid"});
  o.add("anchor_boundary", anchor_boundary,
        "anchors further outside are not trained on; < 0: all are", {.unit = "px"});

  o.add("box_offset", box_offset, "added to box sides; 1 is the legacy convention",
        {.min = 0, .max = 1});
  o.add("max_log_scale", max_log_scale, "dw and dh are cut there", {.min = 0});

  o.add("rpn_high", rpn_high, "IoU from which an anchor is foreground", share);
  o.add("rpn_low", rpn_low, "IoU below which an anchor is background", share);
  o.add("rpn_batch", rpn_batch, "anchors sampled an image", count);
  o.add("rpn_positive", rpn_positive, "largest share of foreground among them", share);
  o.add("rpn_beta", rpn_beta, "smooth-L1 beta of the RPN's boxes; 0 is L1", {.min = 0});
  o.add("rpn_normalizer", rpn_normalizer,
        "RPN losses are divided by rpn_batch x images, or by the anchors sampled",
        {"batch", "sampled"});
  o.add("rpn_pre_nms_train", rpn_pre_nms_train, "proposals a level before NMS", count);
  o.add("rpn_pre_nms_test", rpn_pre_nms_test, "the same when detecting", count);
  o.add("rpn_post_nms_train", rpn_post_nms_train, "proposals an image after NMS", count);
  o.add("rpn_post_nms_test", rpn_post_nms_test, "the same when detecting", count);
  o.add("rpn_nms", rpn_nms, "IoU of the proposals' NMS", share);
  o.add("rpn_rank", rpn_rank,
        "NMS ranks proposals by logit, or by probability (torchvision: more ties)",
        {"logit", "probability"});
  o.add("rpn_min_side", rpn_min_side, "smaller proposals go (sides must exceed 0 in any case)",
        pixels);

  o.add("roi_iou", roi_iou, "IoU from which a region is foreground", share);
  o.add("roi_batch", roi_batch, "regions sampled an image", count);
  o.add("roi_positive", roi_positive, "largest share of foreground among them", share);
  o.add("roi_beta", roi_beta, "smooth-L1 beta of the regions' boxes; 0 is L1", {.min = 0});
  o.add("roi_weights", roi_weights, "weights of dx dy dw dh", {.min = 0});
  o.add("roi_sampling_ratio", roi_sampling_ratio, "ROIAlign samples a cell and axis; 0: adaptive",
        {.min = 0, .max = 16});
  o.add("roi_aligned", roi_aligned, "ROIAlign with the half-pixel shift");
  o.add("box_size", box_size, "cells of the box head's regions", {.min = 1, .max = 64});
  o.add("box_channels", box_channels, "width of the box head's two layers", count);
  o.add("level_epsilon", level_epsilon, "added inside the logarithm that picks a region's level",
        {.min = 0});
  o.add("level_epsilon_after_log", level_epsilon_after_log,
        "added behind that logarithm (torchvision)", {.min = 0});
  o.add("level_canonical_size", level_canonical_size, "regions of this side go to P4",
        {.min = 1, .unit = "px"});
  o.add("background", background, "place of the background class", {"last", "first"});

  o.add("mask_size", mask_size, "cells of the mask head's regions; masks have twice as many",
        {.min = 1, .max = 128});
  o.add("mask_channels", mask_channels, "channels of the mask head", count);
  o.add("mask_convs", mask_convs, "its 3x3 convolutions", {.min = 0, .max = 16});
  o.add("mask_init", mask_init,
        "deviation of the mask predictor's first weights; 0: He's, sqrt(2 / classes)", {.min = 0});
  o.add("mask_target", mask_target,
        "binary (rasterised in the region) or soft (ROIAlign of the mask)", {"binary", "soft"});
  o.add("mask_paste", mask_paste,
        "grid (continuous box, detectron2) or padded (integer box, torchvision)",
        {"grid", "padded"});

  o.add("score_threshold", score_threshold, "detections must exceed it", share);
  o.add("detection_nms", detection_nms, "IoU of the detections' NMS", share);
  o.add("detections", detections, "at most so many an image", count);
  o.add("detection_min_side", detection_min_side, "smaller detections go", pixels);
}

MaskRcnnOptions MaskRcnnOptions::defaults_for(const Config& table) {
  MaskRcnnOptions options;
  const Config* style = table.is_table() ? table.find("style") : nullptr;
  const auto* name = style ? std::get_if<std::string>(&style->data) : nullptr;
  if (!name || *name != "torchvision") return options;
  options.style = "torchvision";
  options.pixel_order = "rgb";
  options.pixel_mean = {123.675, 116.28, 103.53};
  options.pixel_std = {58.395, 57.12, 57.375};
  options.stride_in_1x1 = false;
  options.anchor_cells = "rounded";
  options.anchor_stride = "grid";
  options.rpn_beta = 1.0 / 9;
  options.rpn_normalizer = "sampled";
  options.rpn_post_nms_train = 2000;
  options.rpn_rank = "probability";
  options.rpn_min_side = 1e-3;
  options.roi_beta = 1.0 / 9;
  options.roi_sampling_ratio = 2;
  options.roi_aligned = false;
  options.level_epsilon = 0;
  options.level_epsilon_after_log = 1e-6;
  options.background = "first";
  options.mask_init = 0;
  options.mask_target = "soft";
  options.mask_paste = "padded";
  options.detection_min_side = 1e-2;
  return options;
}

ResNetOptions MaskRcnnOptions::resnet() const {
  return {.depth = std::stoll(backbone.substr(6)),
          .width = width,
          .freeze_at = freeze_at,
          .stride_in_1x1 = stride_in_1x1,
          .zero_init_residual = zero_init_residual,
          .norm = {norm, norm_epsilon}};
}

AnchorOptions MaskRcnnOptions::anchors() const {
  if (anchor_sizes.size() != 5)
    throw ConfigError(fmt::format(
        "model.anchor_sizes has {} values; it takes one for each of P2..P6", anchor_sizes.size()));
  AnchorOptions result{.ratios = anchor_ratios, .cells = anchor_cells};
  for (const double size : anchor_sizes) result.sizes.push_back({size});
  return result;
}

BoxCoder MaskRcnnOptions::roi_coder() const {
  if (roi_weights.size() != 4)
    throw ConfigError("model.roi_weights takes four numbers: dx dy dw dh");
  return {
      {roi_weights[0], roi_weights[1], roi_weights[2], roi_weights[3]}, max_log_scale, box_offset};
}

}  // namespace millrace
