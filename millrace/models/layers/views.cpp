#include "millrace/models/layers/views.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <opencv2/core/mat.hpp>

#include "millrace/dataflow/image/bilinear.h"

namespace millrace {
namespace {

constexpr std::int32_t kDivisor = 32;  // the network takes sides that are multiples of it

std::int32_t scaled(std::int32_t side, double scale) {
  return std::max(1, static_cast<std::int32_t>(std::lround(side * scale)));
}

at::Tensor mirrored(const at::Tensor& boxes, std::int32_t width) {
  const auto side = boxes.unbind(1);
  return at::stack({width - side[2], side[1], width - side[0], side[3]}, 1);
}

/// Pixels of the view per pixel of the image.
at::Tensor growth(const ImageInfo& image, const ImageInfo& in_view,
                  const at::TensorOptions& options) {
  const auto x = static_cast<float>(in_view.width) / static_cast<float>(image.width),
             y = static_cast<float>(in_view.height) / static_cast<float>(image.height);
  return at::tensor({x, y, x, y}, options);
}

}  // namespace

std::vector<View> views_of(const DetectionOptions& options) {
  std::vector<View> result;
  for (const double scale : options.scales) {
    result.push_back({scale, false});
    if (options.flip) result.push_back({scale, true});
  }
  return result;
}

Batch seen(const Batch& batch, const View& view) {
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

}  // namespace millrace
