#include "millrace/dataflow/detection/pad.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <opencv2/core.hpp>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/check_messages.h"
#include "millrace/dataflow/detection/transforms.h"
#include "millrace/dataflow/image/buffer_pool.h"

namespace millrace {
namespace {

/// Returns the padded size that an image of the batch would have alone.
cv::Size own_size(const Batch& batch, const ImageInfo& image) {
  return padded_size({image.width, image.height}, batch.divisor);
}

/// Returns a batch of the images at `places`, padded to `size`.
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

std::vector<BatchPart> split_by_padded_size(const Batch& batch) {
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
        fmt::format("'{}' is not a shape; expected WIDTHxHEIGHT, e.g. \"1344x800\"", text));
  return shape;
}

void Pad::check() const {
  for (const auto& shape : shapes) parse_shape(shape);
}

cv::Size Pad::shape_for(cv::Size size) const {
  if (shapes.empty()) return padded_size(size, divisor);
  cv::Size best;
  for (const auto& text : shapes) {
    const auto shape = parse_shape(text);
    const bool fits = shape.width >= size.width && shape.height >= size.height;
    if (fits && (best.empty() || shape.area() < best.area())) best = shape;
  }
  if (best.empty())
    throw ConfigError(fmt::format(
        "pad: images of up to {} x {} pixels fit into none of the shapes {}; add a larger shape, "
        "set data.aspect_grouping to batch images of similar shape, or lower max_side",
        size.width, size.height, fmt::join(shapes, ", ")));
  return best;
}

std::optional<cv::Size> Pad::largest_output(std::optional<cv::Size> input) const {
  if (shapes.empty()) return input ? std::optional(shape_for(*input)) : std::nullopt;
  return std::ranges::max(shapes | std::views::transform(parse_shape), {},
                          [](cv::Size shape) { return shape.area(); });
}

Batch Pad::operator()(std::vector<Sample> samples) const {
  cv::Size size;
  for (auto& sample : samples) {
    const auto own = image_of(sample, kName).size();
    check_sample(sample);
    size = {std::max(size.width, own.width), std::max(size.height, own.height)};
  }
  size = shape_for(size);
  Batch batch;
  batch.width = size.width;
  batch.height = size.height;
  if (shapes.empty()) batch.divisor = static_cast<std::int32_t>(divisor);

  for (auto& sample : samples) {
    const auto own = sample.image.size();
    batch.images.push_back({sample.image_id, sample.width, sample.height, own.width, own.height,
                            sample.scale_x, sample.scale_y});
    batch.objects.push_back(std::move(sample.objects));
  }
  batch.pixels = batch_memory().acquire(batch.bytes());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    fill_slot(samples[i].image, batch.padded_image(i));
    samples[i].image = {};
  }
  return batch;
}

}  // namespace millrace
