// The options of pixels, residual network and feature pyramid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/models/layers/layers.h"
#include "millrace/models/layers/pixels.h"

namespace millrace {

/// Which five levels there are, and how the coarser ones are made.
enum class FpnTop {
  pool,  // P2 .. P6, of strides 4 .. 64: P6 is P5 subsampled
  p5,    // P3 .. P7, of strides 8 .. 128: P6, P7 by 3x3 convolutions of stride 2 from P5 on
         // (torchvision's RetinaNet)
  c5,    // the same from C5 on (Lin et al. 2017b, detectron2)
};

inline std::vector<std::string> value_names(FpnTop) { return {"pool", "p5", "c5"}; }

enum class BackboneType {
  resnet18,
  resnet34,
  resnet50,
  resnet101,
  hrnet_w18,
  hrnet_w32,
  hrnet_w40,
  hrnet_w48
};
inline std::vector<std::string> value_names(BackboneType) {
  return {"resnet18",  "resnet34",  "resnet50",  "resnet101",
          "hrnet_w18", "hrnet_w32", "hrnet_w40", "hrnet_w48"};
}

/// What heads look at.
enum class BackboneOut {
  fpn,  // all maps, through a pyramid
  c4,   // the map of stride 16 alone; regions pass through the last stage
};
inline std::vector<std::string> value_names(BackboneOut) { return {"fpn", "c4"}; }

/// Defaults are detectron2's.
struct PyramidOptions : PixelOptions {
  /// Described by detectors whose heads can take regions through the last stage.
  BackboneOut out = BackboneOut::fpn;

  BackboneType backbone = BackboneType::resnet50;
  std::int64_t width = 64;
  std::int64_t groups = 1, width_per_group = 64;
  Norm norm = Norm::frozen_bn;
  double norm_eps = 1e-5;
  std::int64_t freeze_at = 2;
  bool stride_in_1x1 = true;
  bool deep_stem = false;
  bool avg_down = false;
  bool zero_init_residual = false;

  std::int64_t out_channels = 256;
  Norm fpn_norm = Norm::none;

  bool has_pyramid() const { return out == BackboneOut::fpn; }
  bool is_hrnet() const { return backbone >= BackboneType::hrnet_w18; }

  void describe(Options& o);
  void use_torchvision();
  void check(const Config& table, const Options& defaults) const;
};

}  // namespace millrace
