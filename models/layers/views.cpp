#include "millrace/models/layers/views.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <opencv2/core/mat.hpp>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/bilinear.h"
#include "millrace/models/onnx/pixels.h"
#include "millrace/models/ops/boxes.h"

namespace millrace {
namespace {

constexpr std::int32_t kDivisor = 32;  // sides of the network's input are multiples of it

std::int32_t scaled(std::int32_t side, double scale) {
  return std::max(1, static_cast<std::int32_t>(std::lround(side * scale)));
}

at::Tensor mirrored(const at::Tensor& boxes, std::int32_t width) {
  const auto side = boxes.unbind(1);
  return at::stack({width - side[2], side[1], width - side[0], side[3]}, 1);
}

/// Returns view pixels per image pixel.
at::Tensor growth(const ImageInfo& image, const ImageInfo& in_view,
                  const at::TensorOptions& options) {
  const auto x = static_cast<float>(in_view.width) / static_cast<float>(image.width),
             y = static_cast<float>(in_view.height) / static_cast<float>(image.height);
  return at::tensor({x, y, x, y}, options);
}

/// `width`: widths that broadcast with the boxes' first coordinates.
onnx::Value mirrored_boxes(const onnx::Value& boxes, const onnx::Value& width) {
  const auto side = [&](std::int64_t at) { return onnx::slice(boxes, -1, at, at + 1); };
  return onnx::concat({width - side(2), side(1), width - side(0), side(3)}, -1);
}

onnx::Value widths(const ViewNodes& nodes) {  // (N, 1)
  return onnx::cast(onnx::slice(nodes.sizes, 1, 1, 2), onnx::Type::f32);
}

}  // namespace

std::vector<View> views_of(const DetectionOptions& options) {
  std::vector<View> result;
  for (const double scale : options.aug_scales) {
    result.push_back({scale, false});
    if (options.aug_flip) result.push_back({scale, true});
  }
  return result;
}

Batch apply_view(const Batch& batch, const View& view) {
  const auto padded = [&](std::int32_t side) {
    return (scaled(side, view.scale) + kDivisor - 1) / kDivisor * kDivisor;
  };
  Batch result{.height = padded(batch.height),
               .width = padded(batch.width),
               .images = batch.images,
               .objects = std::vector<Instances>(batch.size())};
  for (auto& image : result.images) {
    const auto width = scaled(image.width, view.scale), height = scaled(image.height, view.scale);
    image.scale_x *= static_cast<float>(width) / static_cast<float>(image.width);
    image.scale_y *= static_cast<float>(height) / static_cast<float>(image.height);
    image.width = width, image.height = height;
  }
  result.pixels.reset(new std::uint8_t[result.bytes()]());
  at::parallel_for(0, std::ssize(batch.images), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      auto target = result.image(i);
      resize_bilinear(batch.image(i), target, view.flipped);
    }
  });
  return result;
}

at::Tensor into_view(const at::Tensor& boxes, const ImageInfo& image, const ImageInfo& in_view,
                     const View& view) {
  const auto scaled_boxes = boxes * growth(image, in_view, boxes.options());
  return view.flipped ? mirrored(scaled_boxes, in_view.width) : scaled_boxes;
}

at::Tensor out_of_view(const at::Tensor& boxes, const ImageInfo& image, const ImageInfo& in_view,
                       const View& view) {
  return (view.flipped ? mirrored(boxes, in_view.width) : boxes) /
         growth(image, in_view, boxes.options());
}

ViewNodes apply_view(const onnx::Images& images, const onnx::Value& padded, const View& view) {
  const auto in = padded.graph->in("view");
  ViewNodes nodes{images.pixels,
                  images.sizes,
                  onnx::padded_size(onnx::scaled_size(padded, view.scale), kDivisor),
                  {}};
  if (view.scale != 1) {
    if (!images.single)
      throw Error(
          "test-time augmentation at several scales (model.test.aug_scales) can be exported for "
          "single images only; omit --padded, or set model.test.aug_scales = [1]");
    const auto size = onnx::scaled_size(onnx::sides_of(images.pixels, 1, 3), view.scale);
    nodes.pixels =
        onnx::unsqueeze(onnx::resize_bilinear(onnx::squeeze(images.pixels, {0}), size), {0});
    nodes.sizes = onnx::unsqueeze(size, {0});
  }
  if (view.flipped) nodes.pixels = onnx::mirrored(nodes.pixels, nodes.sizes);
  nodes.growth = limits_of(nodes.sizes) / limits_of(images.sizes);
  return nodes;
}

onnx::Value out_of_view(const onnx::Value& boxes, const ViewNodes& nodes, const View& view) {
  const auto own =
      view.flipped ? mirrored_boxes(boxes, onnx::unsqueeze(widths(nodes), {1})) : boxes;
  return own / onnx::unsqueeze(nodes.growth, {1});
}

onnx::Value into_view(const onnx::Value& boxes, const onnx::Value& images, const ViewNodes& nodes,
                      const View& view) {
  const auto grown = boxes * onnx::gather(nodes.growth, images, 0);
  return view.flipped ? mirrored_boxes(grown, onnx::gather(widths(nodes), images, 0)) : grown;
}

}  // namespace millrace
