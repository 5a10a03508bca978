#include "millrace/dataflow/detection/sample.h"

#include <iterator>
#include <utility>

#include "millrace/base/digest.h"

namespace millrace {
namespace {

/// Calls `apply` with each member of `Instances`.
template <class F>
void each_member(F apply) {
  apply(&Instances::boxes);
  apply(&Instances::classes);
  apply(&Instances::crowd);
  apply(&Instances::segmentations);
}

std::uint64_t digest_shape(const coco::Segmentation& shape, std::uint64_t seed) {
  seed = digest(shape.index(), seed);
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
    for (const auto& polygon : *polygons) seed = digest(polygon, digest(polygon.size(), seed));
  } else if (const auto* mask = std::get_if<coco::Rle>(&shape)) {
    seed = digest(mask->counts, digest(mask->width, digest(mask->height, seed)));
  }
  return seed;
}

}  // namespace

void filter_objects(Instances& objects, const std::vector<bool>& stays) {
  each_member([&](auto member) {
    auto& values = objects.*member;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!stays[i]) continue;
      if (i != kept) values[kept] = std::move(values[i]);
      ++kept;
    }
    values.resize(kept);
  });
}

void append(Instances& objects, Instances more) {
  each_member([&](auto member) {
    auto& from = more.*member;
    (objects.*member)
        .insert((objects.*member).end(), std::make_move_iterator(from.begin()),
                std::make_move_iterator(from.end()));
  });
}

Sample without_outlines(Sample sample) {
  for (auto& shape : sample.objects.segmentations)
    if (!std::holds_alternative<std::monostate>(shape)) shape = std::vector<coco::Polygon>();
  return sample;
}

cv::Mat Batch::padded_image(std::size_t i) const {
  const auto slot = static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * 3;
  return {height, width, CV_8UC3, pixels.get() + i * slot};
}

cv::Mat Batch::image(std::size_t i) const {
  return padded_image(i)(cv::Rect(0, 0, images[i].width, images[i].height));
}

std::uint64_t digest(const Instances& objects, std::uint64_t seed) {
  seed = digest(objects.size(), seed);
  seed = digest(objects.crowd, digest(objects.classes, digest(objects.boxes, seed)));
  for (const auto& shape : objects.segmentations) seed = digest_shape(shape, seed);
  return seed;
}

std::uint64_t digest(const Batch& batch) {
  auto sum = digest(batch.pixels.get(), batch.bytes());
  sum = digest(batch.width, digest(batch.height, sum));
  static_assert(std::has_unique_object_representations_v<std::int64_t> && sizeof(ImageInfo) == 32,
                "no padding bytes, which would enter the digest");
  sum = digest(batch.images, sum);
  for (const auto& objects : batch.objects) sum = digest(objects, sum);
  return sum;
}

}  // namespace millrace
