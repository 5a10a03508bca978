// The options of pixels, backbone and feature pyramid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/models/layers/layers.h"
#include "millrace/models/layers/pixels.h"

namespace millrace {

/// The five levels of a pyramid and the source of the coarser ones.
enum class FpnTop {
  pool,  // P2..P6, strides 4 .. 64: P6 is P5 subsampled
  p5,    // P3..P7, strides 8 .. 128: P6 and P7 by 3x3 convolutions of stride 2 from P5
         // (torchvision's RetinaNet)
  c5,    // P3..P7 with P6 from C5 (Lin et al. 2017b, detectron2)
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

/// The maps that heads use.
enum class BackboneOut {
  fpn,  // all maps, through a pyramid
  c4,   // the map of stride 16 alone; the last stage runs on pooled regions
};
inline std::vector<std::string> value_names(BackboneOut) { return {"fpn", "c4"}; }

/// The defaults are detectron2's.
struct PyramidOptions : PixelOptions {
  /// An option only of detectors whose heads can run the last stage on regions.
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
