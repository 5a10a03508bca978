#include "millrace/dataflow/detection/image_sizes.h"

#include <algorithm>

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

}  // namespace millrace
