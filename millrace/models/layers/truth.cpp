#include "millrace/models/layers/truth.h"

#include <ATen/ops/empty.h>

namespace millrace {
namespace {

Truth truth_of(const Instances& objects, const ImageInfo& image, at::Device device) {
  Truth truth{.height = static_cast<double>(image.height),
              .width = static_cast<double>(image.width)};
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (!objects.crowd[i]) rows.push_back(i);
  const auto count = static_cast<std::int64_t>(rows.size());
  truth.boxes = at::empty({count, 4}, at::kFloat);
  truth.labels = at::empty({count}, at::kLong);
  auto* box = truth.boxes.data_ptr<float>();
  auto* label = truth.labels.data_ptr<std::int64_t>();
  for (const auto row : rows) {
    const auto& from = objects.boxes[row];
    *box++ = from.x1, *box++ = from.y1, *box++ = from.x2, *box++ = from.y2;
    *label++ = objects.classes[row];
    truth.segmentations.push_back(&objects.segmentations[row]);
  }
  truth.boxes = truth.boxes.to(device);
  truth.labels = truth.labels.to(device);
  return truth;
}

}  // namespace

std::vector<Truth> truths_of(const Batch& batch, at::Device device) {
  std::vector<Truth> truths;
  for (std::size_t i = 0; i < batch.size(); ++i)
    truths.push_back(truth_of(batch.objects[i], batch.images[i], device));
  return truths;
}

}  // namespace millrace
