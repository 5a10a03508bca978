// From a batch's bytes to a feature pyramid: pixels, residual network and FPN, as configured.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/layers/idle_options.h"
#include "millrace/models/layers/normalize.h"

namespace millrace {

/// Defaults are detectron2's.
struct PyramidOptions {
  std::string pixel_order = "bgr";
  std::vector<double> pixel_mean = {103.53, 116.28, 123.675};
  std::vector<double> pixel_std = {1, 1, 1};

  std::string backbone = "resnet50";
  std::int64_t width = 64;
  std::string norm = "frozen_bn";
  double norm_epsilon = 1e-5;
  std::int64_t freeze_at = 2;
  bool stride_in_1x1 = true;
  bool deep_stem = false;
  bool pool_shortcut = false;
  bool zero_init_residual = false;

  std::int64_t channels = 256;
  std::string fpn_norm = "none";

  void describe(Options& o);
  void use_torchvision();
  void check(const Config& table) const;
  std::vector<IdleOption> idle() const;

  PixelOptions pixels() const;
  ResNetOptions resnet() const;
  /// The normalisation after the backbone: of the pyramid and, where they have one, the heads.
  NormOptions head_norm() const { return {fpn_norm, norm_epsilon}; }
};

class Pyramid {
 public:
  /// Declares its tensors under `scope` (body and fpn) and freezes the stages that the options
  /// name.
  Pyramid(const Scope& scope, const PyramidOptions& options, FpnTop top);

  /// P2..P6, or P3..P7 where two levels stand on top: (N, channels, height / stride, width /
  /// stride) each, of the batch's sides or those of `padded` where it is larger.
  std::vector<at::Tensor> operator()(const Batch& batch, const NormPass& pass,
                                     cv::Size padded = {}) const;

  void refresh();

 private:
  PixelOptions pixels_;
  std::size_t first_;  // the first of C2..C5 that the FPN takes
  at::Device device_;
  ResNet body_;
  Fpn fpn_;
};

}  // namespace millrace
