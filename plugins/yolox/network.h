// The layers of YOLOX: CSPDarknet, the top-down and bottom-up pyramid, and the decoupled head.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "blocks.h"

namespace millrace::yolox {

/// Pixels per cell of the three levels.
constexpr std::array<std::int64_t, 3> kStrides = {8, 16, 32};

struct NetworkOptions {
  double depth = 0.33, width = 0.5;
  BlockOptions blocks;
};

/// A value for each level, fine to coarse.
template <class T>
using Levels = std::array<T, kStrides.size()>;

class CspDarknet {
 public:
  CspDarknet(const Scope& scope, const NetworkOptions& options);

  /// Returns dark3, dark4 and dark5 of pixels (N, 3, H, W).
  template <class T>
  Levels<T> operator()(const T& pixels, const NormMode& mode) const {
    const auto dark3 = third_(
        down3_(second_(down2_(stem_(space_to_depth(pixels), mode), mode), mode), mode), mode);
    const auto dark4 = fourth_(down4_(dark3, mode), mode);
    return {dark3, dark4, fifth_(spp_(down5_(dark4, mode), mode), mode)};
  }

 private:
  Conv stem_, down2_;
  CspLayer second_;
  Conv down3_;
  CspLayer third_;
  Conv down4_;
  CspLayer fourth_;
  Conv down5_;
  SppBottleneck spp_;
  CspLayer fifth_;
};

/// Backbone and pyramid (YOLOPAFPN).
class Pafpn {
 public:
  Pafpn(const Scope& scope, const NetworkOptions& options);

  const CspDarknet& backbone() const { return backbone_; }

  /// Returns maps (N, C_l, H / stride, W / stride) of pixels (N, 3, H, W).
  template <class T>
  Levels<T> operator()(const T& pixels, const NormMode& mode) const {
    const auto [c3, c4, c5] = backbone_(pixels, mode);
    const auto lateral5 = lateral_(c5, mode);
    const auto lateral4 =
        reduce_(p4_(concat_channels({upsample_like(lateral5, c4), c4}), mode), mode);
    const auto p3 = p3_(concat_channels({upsample_like(lateral4, c3), c3}), mode);
    const auto n3 = n3_(concat_channels({up3_(p3, mode), lateral4}), mode);
    return {p3, n3, n4_(concat_channels({up4_(n3, mode), lateral5}), mode)};
  }

 private:
  CspDarknet backbone_;
  Conv lateral_;
  CspLayer p4_;
  Conv reduce_;
  CspLayer p3_;
  Conv up3_;
  CspLayer n3_;
  Conv up4_;
  CspLayer n4_;
};

/// The output of the head for the cells of a level.
template <class T>
struct Predictions {
  T boxes;    // (N, 4, H, W): offset of the centre from the cell's corner, logarithm of the sides;
              // in strides
  T objects;  // (N, 1, H, W): logits
  T classes;  // (N, K, H, W): logits
};

/// The head of one level, with separate branches for classes and for boxes and objectness.
class Head {
 public:
  Head(const Scope& scope, std::int64_t level, const NetworkOptions& options, std::int64_t classes);

  template <class T>
  Predictions<T> operator()(const T& map, const NormMode& mode) const {
    const auto x = stem_(map, mode);
    const auto of_classes = classes2_(classes1_(x, mode), mode);
    const auto of_boxes = boxes2_(boxes1_(x, mode), mode);
    return {boxes_(of_boxes), objects_(of_boxes), classes_(of_classes)};
  }

 private:
  Conv stem_, classes1_, classes2_, boxes1_, boxes2_;
  Conv2d classes_, boxes_, objects_;
};

}  // namespace millrace::yolox
