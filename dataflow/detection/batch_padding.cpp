#include "millrace/dataflow/detection/batch_padding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <opencv2/core.hpp>
#include <stdexcept>
#include <utility>

#include "millrace/dataflow/image/buffer_pool.h"

namespace millrace {
namespace {

/// The size that an image of the batch has alone.
cv::Size own_size(const Batch& batch, const ImageInfo& image) {
  return padded_size({image.width, image.height}, batch.divisor);
}

/// The images at `places`, padded to `size`.
Batch images_of(const Batch& batch, const std::vector<std::size_t>& places, cv::Size size) {
  Batch part{.height = size.height, .width = size.width, .divisor = batch.divisor};
  for (const auto place : places) {
    part.images.push_back(batch.images[place]);
    part.objects.push_back(batch.objects[place]);
  }
  part.pixels = batch_memory().acquire(part.bytes());
  for (std::size_t i = 0; i < places.size(); ++i)
    fill_slot({batch.image(places[i])}, part.padded_image(i));
  return part;
}

}  // namespace

cv::Size padded_size(cv::Size size, std::int64_t divisor) {
  const auto rounded_up = [step = static_cast<int>(divisor)](int side) {
    return (side + step - 1) / step * step;
  };
  return {rounded_up(size.width), rounded_up(size.height)};
}

void fill_slot(const LazyImage& image, cv::Mat slot) {
  const auto size = image.size();
  auto corner = slot(cv::Rect({0, 0}, size));
  image.write_to(corner);
  slot(cv::Range(0, size.height), cv::Range(size.width, slot.cols)).setTo(0);
  slot.rowRange(size.height, slot.rows).setTo(0);
}

std::vector<BatchPart> parts_of_one_size(const Batch& batch) {
  std::vector<std::size_t> all(batch.size());
  std::iota(all.begin(), all.end(), 0);
  if (batch.divisor == 0 || std::ranges::all_of(batch.images, [&](const ImageInfo& image) {
        return own_size(batch, image) == cv::Size(batch.width, batch.height);
      }))
    return {{batch, std::move(all)}};
  std::vector<std::pair<cv::Size, std::vector<std::size_t>>> by_size;
  for (const auto place : all) {
    const auto size = own_size(batch, batch.images[place]);
    auto same = std::ranges::find(by_size, size, [](const auto& group) { return group.first; });
    if (same == by_size.end()) same = by_size.insert(same, {size, {}});
    same->second.push_back(place);
  }
  std::vector<BatchPart> parts;
  for (auto& [size, places] : by_size) {
    auto images = images_of(batch, places, size);
    parts.push_back({std::move(images), std::move(places)});
  }
  return parts;
}

cv::Size parse_shape(const std::string& text) {
  cv::Size shape;
  int read = 0;
  const bool whole =
      std::sscanf(text.c_str(), "%dx%d%n", &shape.width, &shape.height, &read) == 2 &&
      static_cast<std::size_t>(read) == text.size();
  if (!whole || shape.width < 1 || shape.height < 1 || std::max(shape.width, shape.height) > 65535)
    throw std::invalid_argument(
        fmt::format("'{}' is no shape; write width and height, such as \"1344x800\"", text));
  return shape;
}

}  // namespace millrace
