#include "millrace/dataflow/detection/pad.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/batch_padding.h"
#include "millrace/dataflow/detection/check_messages.h"
#include "millrace/dataflow/detection/transforms.h"
#include "millrace/dataflow/image/buffer_pool.h"

namespace millrace {

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
        "pad: images of up to {} x {} pixels fit into none of the shapes {}; add a larger one, let "
        "data.aspect_grouping batch images of like shape, or let max_side keep images smaller",
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
