#include "millrace/dataflow/stages/resize_shortest_edge.h"

#include <algorithm>
#include <stdexcept>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_map<Sample, ResizeShortestEdge>(
    "resizes the image, bilinearly, so that its shorter side has a given length"));

std::int64_t drawn(const ResizeShortestEdge& stage, Rng& rng) {
  stage.check();
  const auto& sides = stage.short_side;
  return stage.range ? rng.between(sides[0], sides[1]) : sides[rng.below(sides.size())];
}

}  // namespace

cv::Size shortest_edge_size(cv::Size size, std::int64_t short_side, std::int64_t max_side) {
  const auto target = static_cast<double>(short_side);
  const auto bound = static_cast<double>(max_side);
  const double scale = target / std::min(size.width, size.height);
  double width = size.height < size.width ? scale * size.width : target;
  double height = size.height < size.width ? target : scale * size.height;
  if (std::max(width, height) > bound) {
    const double shrink = bound / std::max(width, height);
    width *= shrink;
    height *= shrink;
  }
  return {std::max(1, static_cast<int>(width + 0.5)), std::max(1, static_cast<int>(height + 0.5))};
}

cv::Size torchvision_size(cv::Size size, std::int64_t short_side, std::int64_t max_side) {
  const auto [shorter, longer] = std::minmax(size.width, size.height);
  const double scale =
      std::min(static_cast<double>(short_side) / shorter, static_cast<double>(max_side) / longer);
  return {std::max(1, static_cast<int>(size.width * scale)),
          std::max(1, static_cast<int>(size.height * scale))};
}

cv::Size ResizeShortestEdge::size_of(cv::Size image, std::int64_t side) const {
  return style == "torchvision" ? torchvision_size(image, side, max_side)
                                : shortest_edge_size(image, side, max_side);
}

void ResizeShortestEdge::check() const {
  if (short_side.empty())
    throw std::invalid_argument("resize_shortest_edge: short_side: one length at least is wanted");
  if (range && (short_side.size() != 2 || short_side[0] > short_side[1]))
    throw std::invalid_argument(
        "resize_shortest_edge: short_side: a range is two lengths, the shorter one first");
}

Sample ResizeShortestEdge::operator()(Sample sample, Rng& rng) const {
  const auto old = image_of(sample, kName).size();
  const auto side = drawn(*this, rng);
  if (style == "torchvision") {
    for (auto& shape : sample.objects.segmentations)
      if (!std::holds_alternative<std::monostate>(shape)) shape = rasterised(shape, old);
    resize(sample, size_of(old, side), Sampling::corners);
  } else {
    resize(sample, size_of(old, side));
  }
  return sample;
}

}  // namespace millrace
