#include "millrace/dataflow/stages/resize_shortest_edge.h"

#include <algorithm>
#include <stdexcept>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<ResizeShortestEdge>(
    "resizes the image, bilinearly, so that its shorter side has a given length"));

std::int64_t drawn(const ResizeShortestEdge& stage, Rng& rng) {
  stage.check();
  const auto& sides = stage.short_side;
  return stage.range ? rng.between(sides[0], sides[1]) : sides[rng.below(sides.size())];
}

}  // namespace

cv::Size ResizeShortestEdge::size_of(cv::Size image, std::int64_t side) const {
  return style == ResizeStyle::torchvision ? torchvision_size(image, side, max_side)
                                           : shortest_edge_size(image, side, max_side);
}

void ResizeShortestEdge::check() const {
  if (short_side.empty())
    throw std::invalid_argument("resize_shortest_edge: short_side: at least one length is needed");
  if (range && (short_side.size() != 2 || short_side[0] > short_side[1]))
    throw std::invalid_argument(
        "resize_shortest_edge: short_side: a range is two lengths, the shorter one first");
}

Sample ResizeShortestEdge::operator()(Sample sample, Rng& rng) const {
  const auto old = image_of(sample, kName).size();
  const auto side = drawn(*this, rng);
  if (style == ResizeStyle::torchvision) {
    for (auto& shape : sample.objects.segmentations)
      if (!std::holds_alternative<std::monostate>(shape)) shape = rasterised(shape, old);
    resize(sample, size_of(old, side), Sampling::corners);
  } else {
    resize(sample, size_of(old, side));
  }
  return sample;
}

}  // namespace millrace
