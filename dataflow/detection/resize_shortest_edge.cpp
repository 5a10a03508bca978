#include "millrace/dataflow/detection/resize_shortest_edge.h"

#include <stdexcept>
#include <variant>

#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

cv::Size shortest_edge_size(cv::Size image, std::int64_t short_side, std::int64_t max_side) {
  const auto target = static_cast<double>(short_side);
  const auto bound = static_cast<double>(max_side);
  const double scale = target / std::min(image.width, image.height);
  double width = image.height < image.width ? scale * image.width : target;
  double height = image.height < image.width ? target : scale * image.height;
  if (std::max(width, height) > bound) {
    const double shrink = bound / std::max(width, height);
    width *= shrink;
    height *= shrink;
  }
  return {std::max(1, static_cast<int>(width + 0.5)), std::max(1, static_cast<int>(height + 0.5))};
}

cv::Size torchvision_size(cv::Size image, std::int64_t short_side, std::int64_t max_side) {
  const auto [shorter, longer] = std::minmax(image.width, image.height);
  const double scale =
      std::min(static_cast<double>(short_side) / shorter, static_cast<double>(max_side) / longer);
  return {std::max(1, static_cast<int>(image.width * scale)),
          std::max(1, static_cast<int>(image.height * scale))};
}

cv::Size ResizeShortestEdge::size_of(cv::Size image, std::int64_t side) const {
  if (style == ResizeStyle::square) return {static_cast<int>(side), static_cast<int>(side)};
  return rounds(style) ? shortest_edge_size(image, side, max_side)
                       : torchvision_size(image, side, max_side);
}

void ResizeShortestEdge::check() const {
  if (range && (short_side.size() != 2 || short_side[0] > short_side[1]))
    throw std::invalid_argument(
        "resize_shortest_edge: short_side: a range must be [lowest, highest]");
}

Sample ResizeShortestEdge::operator()(Sample sample, Rng& rng) const {
  const auto old = image_of(sample, kName).size();
  const auto side =
      range ? rng.between(short_side[0], short_side[1]) : short_side[rng.below(short_side.size())];
  if (style == ResizeStyle::torchvision) {
    for (auto& shape : sample.objects.segmentations)
      if (!std::holds_alternative<std::monostate>(shape)) shape = rasterised(shape, old);
    resize(sample, size_of(old, side), Sampling::corners);
  } else {
    resize(sample, size_of(old, side), Sampling::centres,
           style == ResizeStyle::detectron2 ? Resampling::pillow : Resampling::opencv);
  }
  return sample;
}

}  // namespace millrace
