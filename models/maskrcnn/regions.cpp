#include "millrace/models/maskrcnn/regions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <bit>
#include <limits>

#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/roi_align.h"

namespace millrace {
namespace {

constexpr std::int64_t kStrideOfP2 = 4, kStrideOfC4 = 16;

/// Returns the smallest area of a region of each level above the first. Thresholds on areas give
/// the levels of region_levels without its logarithm, which other libraries round differently.
std::array<float, 3> areas_of_levels(const PoolOptions& options) {
  std::array<float, 3> result;
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto low = std::bit_cast<std::uint32_t>(0.F),
         high = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
    while (low < high) {  // nonnegative floats have the order of their bits
      const auto middle = low + (high - low) / 2;
      const auto box = at::tensor({0.F, 0.F, std::bit_cast<float>(middle), 1.F}).view({1, 4});
      if (region_levels(box, options).item<std::int64_t>() >= static_cast<std::int64_t>(i) + 3)
        high = middle;
      else
        low = middle + 1;
    }
    result[i] = std::bit_cast<float>(low);
  }
  return result;
}

/// Adds the nodes of ROIAlign on one map with that stride, in image pixels.
onnx::Value align(const onnx::Value& map, const onnx::Value& boxes, const onnx::Value& images,
                  std::int64_t size, std::int64_t stride, const PoolOptions& options) {
  return map.graph->add(
      "RoiAlign", {map, boxes, images},
      {{"mode", "avg"},
       {"coordinate_transformation_mode", options.aligned ? "half_pixel" : "output_half_pixel"},
       {"output_height", size},
       {"output_width", size},
       {"sampling_ratio", options.sampling_ratio},
       {"spatial_scale", 1.F / static_cast<float>(stride)}});
}

/// Pools regions from P2..P5; returns (P, C, size, size).
onnx::Value pool_regions(const std::vector<onnx::Value>& features, const RegionNodes& regions,
                         std::int64_t size, const PoolOptions& options) {
  auto& g = *regions.boxes.graph;
  const auto in = g.in("pool_regions");
  const auto sides = sides_of_boxes(regions.boxes);
  const auto area = onnx::squeeze(onnx::slice(sides, 1, 0, 1) * onnx::slice(sides, 1, 1, 2), {1});
  const auto limits = areas_of_levels(options);
  std::vector<onnx::Value> rows, pooled;
  for (std::size_t level = 0; level < 4; ++level) {
    // An area that is NaN belongs to the first level.
    onnx::Value own;
    if (level > 0) own = area >= limits[level - 1];
    if (level < 3) {
      const auto not_above = g.add("Not", {area >= limits[level]});
      own = own.defined() ? own && not_above : not_above;
    }
    const auto row = onnx::squeeze(onnx::places_of(own), {1});
    rows.push_back(row);
    pooled.push_back(align(features[level], onnx::gather(regions.boxes, row, 0),
                           onnx::gather(regions.images, row, 0), size, kStrideOfP2 << level,
                           options));
  }
  // Restores the order of the regions from that of the levels.
  const auto order = onnx::concat(rows, 0);
  const auto place = onnx::range(onnx::side_of(order, 0));
  const auto inverse = g.add("ScatterElements", {place, order, place});
  return onnx::gather(onnx::concat(pooled, 0), inverse, 0);
}

}  // namespace

void PoolOptions::describe(Options& o) {
  o.add("roi.sampling_ratio", sampling_ratio, "ROIAlign samples per cell and axis; 0 = adaptive",
        {.min = 0, .max = 16})
      .affects(WeightEffect::meaning);
  o.add("roi.aligned", aligned, "shift ROIAlign's samples by half a pixel")
      .affects(WeightEffect::meaning);
  o.add("roi.level_eps", level_eps, "epsilon inside the logarithm that selects a region's level",
        {.min = 0})
      .affects(WeightEffect::meaning);
  o.add("roi.level_eps_after_log", level_eps_after_log,
        "epsilon added to the logarithm that selects a region's level (torchvision)", {.min = 0})
      .affects(WeightEffect::meaning);
  o.add("roi.canonical_box_size", canonical_box_size, "side of a region that is assigned to P4",
        {.min = 1, .unit = "px"})
      .affects(WeightEffect::meaning);
}

at::Tensor region_levels(const at::Tensor& boxes, const PoolOptions& options) {
  const auto side =
      ((boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1)))
          .sqrt();
  constexpr double kNoSide = 1e-30;  // far below P2, with a finite logarithm
  const auto level =
      (side / options.canonical_box_size + options.level_eps).clamp_min(kNoSide).log2() + 4 +
      options.level_eps_after_log;
  return level.floor().clamp(2, 5).nan_to_num(2).to(at::kLong);
}

at::Tensor as_rois(const std::vector<at::Tensor>& boxes) {
  std::vector<at::Tensor> rois;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    rois.push_back(at::cat(
        {at::full({boxes[i].size(0), 1}, static_cast<double>(i), boxes[i].options()), boxes[i]},
        1));
  return at::cat(rois);
}

at::Tensor RegionPooler::operator()(const std::vector<at::Tensor>& maps, const at::Tensor& rois,
                                    std::int64_t size, const NormMode& mode) const {
  const auto pooled = [&](at::TensorList own, const at::Tensor& levels, std::int64_t stride) {
    return roi_align(
        own, rois, levels,
        {size, size, 1.0 / static_cast<double>(stride), options_.sampling_ratio, options_.aligned});
  };
  if (has_last_stage()) return through(last_stage_, pooled(maps, /*levels=*/{}, kStrideOfC4), mode);
  return pooled(at::TensorList(maps).slice(0, 4), region_levels(rois.narrow(1, 1, 4), options_) - 2,
                kStrideOfP2);
}

onnx::Value RegionPooler::operator()(const std::vector<onnx::Value>& maps,
                                     const RegionNodes& regions, std::int64_t size) const {
  if (!has_last_stage()) return pool_regions(maps, regions, size, options_);
  return through(last_stage_,
                 align(maps[0], regions.boxes, regions.images, size, kStrideOfC4, options_),
                 NormMode{});
}

}  // namespace millrace
