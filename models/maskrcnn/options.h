// Every number of Mask R-CNN that changes a result. Defaults are detectron2's 1x recipe; `style` picks another
// published set, and each switch may still be set alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "models/backbones/resnet.h"
#include "models/layers/anchors.h"
#include "models/layers/boxes.h"

namespace millrace {

struct MaskRcnnOptions {
  std::string style = "detectron2";
  bool masks = true;

  // Input: what is done to the bytes.
  std::string pixel_order = "bgr";
  std::vector<double> pixel_mean = {103.53, 116.28, 123.675};
  std::vector<double> pixel_std = {1, 1, 1};

  // Backbone.
  std::string backbone = "resnet50";
  std::int64_t width = 64;
  std::string norm = "frozen_bn";
  double norm_epsilon = 1e-5;
  std::int64_t freeze_at = 2;
  bool stride_in_1x1 = true;
  bool zero_init_residual = false;
  std::int64_t fpn_channels = 256;
  std::string fpn_norm = "none";

  // Anchors.
  std::vector<double> anchor_sizes = {32, 64, 128, 256, 512};
  std::vector<double> anchor_ratios = {0.5, 1, 2};
  std::string anchor_cells = "exact";
  std::string anchor_stride = "level";
  double anchor_boundary = -1;

  // Box arithmetic.
  double box_offset = 0;
  double max_log_scale = 4.135166556742356;

  // RPN.
  double rpn_high = 0.7, rpn_low = 0.3;
  std::int64_t rpn_batch = 256;
  double rpn_positive = 0.5;
  double rpn_beta = 0;
  std::string rpn_normalizer = "batch";
  std::int64_t rpn_pre_nms_train = 2000, rpn_pre_nms_test = 1000;
  std::int64_t rpn_post_nms_train = 1000, rpn_post_nms_test = 1000;
  double rpn_nms = 0.7;
  std::string rpn_rank = "logit";
  double rpn_min_side = 0;

  // Regions.
  double roi_iou = 0.5;
  std::int64_t roi_batch = 512;
  double roi_positive = 0.25;
  double roi_beta = 0;
  std::vector<double> roi_weights = {10, 10, 5, 5};
  std::int64_t roi_sampling_ratio = 0;
  bool roi_aligned = true;
  std::int64_t box_size = 7;
  std::int64_t box_channels = 1024;
  double level_epsilon = 1e-8;
  double level_epsilon_after_log = 0;
  double level_canonical_size = 224;
  std::string background = "last";

  // Masks.
  std::int64_t mask_size = 14;
  std::int64_t mask_channels = 256;
  std::int64_t mask_convs = 4;
  double mask_init = 0.001;
  std::string mask_target = "binary";
  std::string mask_paste = "grid";

  // Detection.
  double score_threshold = 0.05;
  double detection_nms = 0.5;
  std::int64_t detections = 100;
  double detection_min_side = 0;

  void describe(Options& o);

  /// The defaults of the table's `style`.
  static MaskRcnnOptions defaults_for(const Config& table);

  ResNetOptions resnet() const;
  AnchorOptions anchors() const;
  BoxCoder rpn_coder() const { return {{1, 1, 1, 1}, max_log_scale, box_offset}; }
  BoxCoder roi_coder() const;
};

}  // namespace millrace
