#include "dataflow/stages/pad.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataflow/detection_stages.h"
#include "dataflow/transforms.h"

namespace millrace {
namespace {

const bool registered = register_map<std::vector<Sample>, Pad>(
    "puts a group of samples into one batch, padded with zeros to one size");

/// Copies an image into the top left corner of a slot of width x height pixels and clears the rest.
void fill_slot(const cv::Mat& image, std::uint8_t* slot, std::int32_t width, std::int32_t height) {
  const auto row = static_cast<std::size_t>(width) * 3;
  const auto used = static_cast<std::size_t>(image.cols) * 3;
  for (int y = 0; y < image.rows; ++y, slot += row) {
    std::memcpy(slot, image.ptr(y), used);
    std::memset(slot + used, 0, row - used);
  }
  std::memset(slot, 0, row * static_cast<std::size_t>(height - image.rows));
}

}  // namespace

Batch Pad::operator()(std::vector<Sample> samples) const {
  Batch batch;
  for (auto& sample : samples) {
    const auto& image = pixels(sample, kName);
    batch.width = std::max(batch.width, image.cols);
    batch.height = std::max(batch.height, image.rows);
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
    fill_slot(sample.image, batch.pixels.get() + slot * batch.size(), batch.width, batch.height);
    batch.images.push_back({sample.image_id, sample.width, sample.height, sample.image.cols,
                            sample.image.rows, sample.scale_x, sample.scale_y});
    batch.objects.push_back(std::move(sample.objects));
  }
  return batch;
}

}  // namespace millrace
