#include "dataflow/stages/pad.h"

#include <algorithm>
#include <utility>

#include "dataflow/detection_stages.h"
#include "dataflow/transforms.h"

namespace millrace {
namespace {

const bool registered = register_map<std::vector<Sample>, Pad>(
    "puts a group of samples into one batch, padded with zeros to one size");

/// Writes an image into the top left corner of a slot and clears the rest.
void fill_slot(const LazyImage& image, cv::Mat slot) {
  const auto size = image.size();
  auto corner = slot(cv::Rect({0, 0}, size));
  image.write_to(corner);
  slot(cv::Range(0, size.height), cv::Range(size.width, slot.cols)).setTo(0);
  slot.rowRange(size.height, slot.rows).setTo(0);
}

}  // namespace

Batch Pad::operator()(std::vector<Sample> samples) const {
  Batch batch;
  for (auto& sample : samples) {
    const auto size = image_of(sample, kName).size();
    batch.width = std::max(batch.width, size.width);
    batch.height = std::max(batch.height, size.height);
  }
  const auto rounded_up = [step = static_cast<std::int32_t>(divisor)](std::int32_t side) {
    return (side + step - 1) / step * step;
  };
  batch.width = rounded_up(batch.width);
  batch.height = rounded_up(batch.height);

  const auto slot =
      static_cast<std::size_t>(batch.width) * static_cast<std::size_t>(batch.height) * 3;
  batch.pixels = pool.acquire(slot * samples.size());
  for (auto& sample : samples) {
    const auto size = sample.image.size();
    fill_slot(sample.image,
              {batch.height, batch.width, CV_8UC3, batch.pixels.get() + slot * batch.size()});
    sample.image = {};
    batch.images.push_back({sample.image_id, sample.width, sample.height, size.width, size.height,
                            sample.scale_x, sample.scale_y});
    batch.objects.push_back(std::move(sample.objects));
  }
  return batch;
}

}  // namespace millrace
