// The size that an image is resized to.
#pragma once

#include <cstdint>
#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

namespace millrace {

/// How sides become whole pixels, and how masks are resized.
enum class ResizeStyle {
  detectron2,   // sides are rounded, polygons scaled
  torchvision,  // sides are cut, masks become bitmaps first
};
inline std::vector<std::string> value_names(ResizeStyle) { return {"detectron2", "torchvision"}; }

/// The size of an image of size `image` whose shorter side becomes `short_side` pixels long, or
/// less where the longer side would exceed `max_side`. As detectron2's ResizeShortestEdge, its
/// rounding included.
cv::Size shortest_edge_size(cv::Size image, std::int64_t short_side, std::int64_t max_side);

/// The same as torchvision's GeneralizedRCNNTransform: cut to whole pixels.
cv::Size torchvision_size(cv::Size image, std::int64_t short_side, std::int64_t max_side);

}  // namespace millrace
