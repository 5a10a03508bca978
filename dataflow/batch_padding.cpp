#include "dataflow/batch_padding.h"

#include <fmt/format.h>

#include <opencv2/core.hpp>
#include <stdexcept>
#include <utility>

#include "dataflow/buffer_pool.h"

namespace millrace {
namespace {

cv::Mat slot_of(const Batch& batch, std::size_t image) {
  const auto bytes =
      static_cast<std::size_t>(batch.width) * static_cast<std::size_t>(batch.height) * 3;
  return {batch.height, batch.width, CV_8UC3, batch.pixels.get() + image * bytes};
}

}  // namespace

void fill_slot(const LazyImage& image, cv::Mat slot) {
  const auto size = image.size();
  auto corner = slot(cv::Rect({0, 0}, size));
  image.write_to(corner);
  slot(cv::Range(0, size.height), cv::Range(size.width, slot.cols)).setTo(0);
  slot.rowRange(size.height, slot.rows).setTo(0);
}

Batch pad_to(Batch batch, std::int32_t width, std::int32_t height) {
  if (batch.width == width && batch.height == height) return batch;
  if (batch.width > width || batch.height > height)
    throw std::invalid_argument(fmt::format("a batch of {} x {} pixels cannot be padded to {} x {}",
                                            batch.width, batch.height, width, height));
  const auto before = std::move(batch.pixels);
  const Batch from{.pixels = before, .height = batch.height, .width = batch.width};
  batch.width = width;
  batch.height = height;
  batch.pixels = batch_memory().acquire(batch.bytes());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& own = batch.images[i];
    fill_slot({slot_of(from, i)(cv::Rect(0, 0, own.width, own.height))}, slot_of(batch, i));
  }
  return batch;
}

}  // namespace millrace
