#include "millrace/cli/page_pictures.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "millrace/coco/drawing/outline.h"
#include "millrace/coco/picture/encode.h"

namespace millrace::cli {

std::string thumbnail(const cv::Mat& rgb, int side) {
  constexpr int kQuality = 78;
  const double longer = std::max(rgb.cols, rgb.rows);
  if (longer <= side) return coco::encode_jpeg(rgb, kQuality);
  const auto shrunk = [&](int length) {
    return std::max(1, static_cast<int>(length * side / longer));
  };
  cv::Mat small;
  cv::resize(rgb, small, {shrunk(rgb.cols), shrunk(rgb.rows)}, 0, 0, cv::INTER_AREA);
  return coco::encode_jpeg(small, kQuality);
}

double outline_tolerance(cv::Size image, int side) {
  constexpr double kSeen = 0.7;  // pixels of the thumbnail
  return kSeen * std::max(1., static_cast<double>(std::max(image.width, image.height)) / side);
}

std::vector<page::Shape> annotated(const Instances& objects, double tolerance) {
  std::vector<page::Shape> shapes;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& box = objects.boxes[i];
    shapes.push_back({.category = objects.classes[i],
                      .box = {box.x1, box.y1, box.width(), box.height()},
                      .outline = coco::outline(objects.segmentations[i], tolerance),
                      .kind = page::Shape::annotated,
                      .note = objects.crowd[i] ? "crowd" : ""});
  }
  return shapes;
}

}  // namespace millrace::cli
