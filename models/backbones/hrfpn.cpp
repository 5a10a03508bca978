#include "millrace/models/backbones/hrfpn.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <ranges>

#include "millrace/models/onnx/operations.h"

namespace millrace {
namespace {

constexpr std::int64_t kLevels = 5;

ConvNorm block(const Scope& scope, const Conv2d::Shape& shape, const NormOptions& norm) {
  return {scope / 0, scope / 1, shape, norm, 1, {Init::Kind::xavier}};
}

/// Returns means of 2 x 2 cells, without a last odd row or column; a side of one cell stays.
at::Tensor halved(const at::Tensor& x) {
  const std::array cells{std::min<std::int64_t>(2, x.size(2)),
                         std::min<std::int64_t>(2, x.size(3))};
  return at::avg_pool2d(x, cells, cells);
}

onnx::Value halved(const onnx::Value& x) {
  auto& g = *x.graph;
  // A side of one cell is padded to two first.
  const auto more = onnx::maximum(g.ints({2, 2}) - onnx::sides_of(x, 2, 4), 0);
  const auto even =
      g.add("Pad", {x, onnx::concat({g.ints({0, 0, 0, 0, 0, 0}), more}, 0)}, {{"mode", "edge"}});
  return g.add("AveragePool", {even},
               {{"kernel_shape", onnx::Ints{2, 2}}, {"strides", onnx::Ints{2, 2}}});
}

/// Resizes all maps to the sides of the first and concatenates them.
at::Tensor joined(std::vector<at::Tensor> maps) {
  const std::array sides{maps[0].size(2), maps[0].size(3)};
  for (auto& map : maps | std::views::drop(1))
    map = at::upsample_bilinear2d(map, sides, /*align_corners=*/false);
  return at::cat(maps, 1);
}

onnx::Value joined(std::vector<onnx::Value> maps) {
  const auto sides = onnx::sides_of(maps[0], 2, 4);
  for (auto& map : maps | std::views::drop(1)) map = onnx::upsample_bilinear(map, sides);
  return onnx::concat(maps, 1);
}

}  // namespace

HrFpn::HrFpn(const Scope& scope, at::IntArrayRef in, std::int64_t channels, const NormOptions& norm,
             FpnTop top) {
  const auto all = std::accumulate(in.begin(), in.end(), std::int64_t{0});
  reduction_ = block(scope / "reduction", {all, channels, 1}, norm);
  const std::int64_t stride = top == FpnTop::pool ? 1 : 2;
  for (std::int64_t level = 0; level < kLevels; ++level)
    output_.push_back(block(scope / "layer_blocks" / level, {channels, channels, 3, stride}, norm));
}

template <class X>
std::vector<X> HrFpn::operator()(const std::vector<X>& c, const NormMode& mode) const {
  auto level = reduction_(joined(c), mode);
  std::vector<X> p;
  for (const auto& output : output_) {
    if (!p.empty()) level = halved(level);
    p.push_back(output(level, mode));
  }
  return p;
}

template std::vector<at::Tensor> HrFpn::operator()(const std::vector<at::Tensor>&,
                                                   const NormMode&) const;
template std::vector<onnx::Value> HrFpn::operator()(const std::vector<onnx::Value>&,
                                                    const NormMode&) const;

}  // namespace millrace
