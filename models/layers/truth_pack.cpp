#include "millrace/models/layers/truth_pack.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "millrace/models/ops/upload.h"

namespace millrace {
namespace {

/// Fills the tables that are derived from the others, on the CPU.
void complete(TruthPack& pack, const std::vector<Truth>& truths) {
  const auto images = std::ssize(truths);
  std::vector<std::int64_t> begins{0}, polygon_begins{0}, object_begins{0};
  std::vector<double> points;
  pack.sizes = at::empty({images, 4}, at::kFloat);
  auto* size = pack.sizes.mutable_data_ptr<float>();
  std::int64_t most = 0;
  for (std::int64_t image = 0; image < images; ++image) {
    const auto& truth = truths[static_cast<std::size_t>(image)];
    const auto width = static_cast<float>(truth.width), height = static_cast<float>(truth.height);
    for (const float side : {width, height, width, height}) *size++ = side;
    const auto count = truth.boxes.size(0);
    begins.push_back(begins.back() + count);
    most = std::max(most, count);
    pack.images.insert(pack.images.end(), static_cast<std::size_t>(count), image);
    for (const auto* shape : truth.segmentations) {
      pack.segmentations.push_back(shape);
      const auto* polygons = std::get_if<std::vector<coco::Polygon>>(shape);
      pack.only_polygons = pack.only_polygons && polygons;
      if (polygons)
        for (const auto& polygon : *polygons) {
          points.insert(points.end(), polygon.begin(), polygon.end());
          polygon_begins.push_back(std::ssize(points) / 2);
        }
      object_begins.push_back(std::ssize(polygon_begins) - 1);
    }
  }
  pack.padded = at::zeros({images, most, 4}, at::kFloat);
  pack.present = at::zeros({images, most}, at::kBool);
  for (std::int64_t image = 0; image < images; ++image) {
    const auto at_image = static_cast<std::size_t>(image);
    const auto first = begins[at_image], count = begins[at_image + 1] - first;
    pack.padded[image].narrow(0, 0, count).copy_(pack.boxes.narrow(0, first, count));
    pack.present[image].narrow(0, 0, count).fill_(true);
  }
  pack.begins = at::tensor(begins, at::kLong);
  pack.polygon_begins = at::tensor(polygon_begins, at::kLong);
  pack.object_begins = at::tensor(object_begins, at::kLong);
  pack.points = at::tensor(points, at::kDouble).view({-1, 2});
}

void upload(TruthPack& pack, at::Device device) {
  const std::vector<at::Tensor*> tables{&pack.boxes,          &pack.labels, &pack.begins,
                                        &pack.sizes,          &pack.padded, &pack.present,
                                        &pack.polygon_begins, &pack.points, &pack.object_begins};
  std::vector<at::Tensor> values;
  for (const auto* table : tables) values.push_back(*table);
  values = uploaded(std::move(values), device);
  for (std::size_t i = 0; i < tables.size(); ++i) *tables[i] = std::move(values[i]);
}

}  // namespace

std::vector<Truth> truths_of(const Batch& batch, at::Device device) {
  std::vector<Truth> truths;
  const auto pack = std::make_shared<TruthPack>();
  std::vector<float> boxes;
  std::vector<std::int64_t> labels, counts;
  for (std::size_t image = 0; image < batch.size(); ++image) {
    const auto& objects = batch.objects[image];
    Truth truth{.height = static_cast<double>(batch.images[image].height),
                .width = static_cast<double>(batch.images[image].width),
                .pack = pack};
    const auto first = std::ssize(labels);
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (objects.crowd[i]) continue;
      const auto& from = objects.boxes[i];
      boxes.insert(boxes.end(), {from.x1, from.y1, from.x2, from.y2});
      labels.push_back(objects.classes[i]);
      truth.segmentations.push_back(&objects.segmentations[i]);
    }
    counts.push_back(std::ssize(labels) - first);
    truths.push_back(std::move(truth));
  }
  pack->boxes = at::tensor(boxes, at::kFloat).view({-1, 4});
  pack->labels = at::tensor(labels, at::kLong);
  const auto share_out = [&] {
    std::int64_t first = 0;
    for (std::size_t image = 0; image < truths.size(); first += counts[image++]) {
      truths[image].boxes = pack->boxes.narrow(0, first, counts[image]);
      truths[image].labels = pack->labels.narrow(0, first, counts[image]);
    }
  };
  share_out();
  complete(*pack, truths);
  upload(*pack, device);
  share_out();
  return truths;
}

std::shared_ptr<const TruthPack> pack_of(const std::vector<Truth>& truths) {
  const auto& whole = truths.at(0).pack;
  const auto shares = [&](const Truth& truth) { return truth.pack == whole; };
  if (whole && whole->sizes.size(0) == std::ssize(truths) && std::ranges::all_of(truths, shares))
    return whole;
  const auto pack = std::make_shared<TruthPack>();
  std::vector<at::Tensor> boxes, labels;
  for (const auto& truth : truths) boxes.push_back(truth.boxes), labels.push_back(truth.labels);
  pack->boxes = at::cat(boxes).cpu();
  pack->labels = at::cat(labels).cpu();
  complete(*pack, truths);
  upload(*pack, truths[0].boxes.device());
  return pack;
}

}  // namespace millrace
