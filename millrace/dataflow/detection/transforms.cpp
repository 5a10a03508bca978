#include "millrace/dataflow/detection/transforms.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "millrace/dataflow/detection/geometry.h"

namespace millrace {

LazyImage& image_of(Sample& sample, std::string_view stage) {
  if (sample.image.empty())
    throw std::logic_error(std::string(stage) + ": put the stage 'decode' in front of it");
  return sample.image;
}

cv::Mat& pixels(Sample& sample, std::string_view stage) { return image_of(sample, stage).pixels(); }

cv::Size fitted_size(cv::Size image, double width, double height) {
  const double scale = std::min(width / image.width, height / image.height);
  const auto side = [scale](int length) {
    return std::max(1, static_cast<int>(std::lround(scale * length)));
  };
  return {side(image.width), side(image.height)};
}

void resize(Sample& sample, cv::Size size, Sampling sampling) {
  const auto old = sample.image.size();
  if (size == old) return;

  sample.image.resize(size);
  const float scale_x = static_cast<float>(size.width) / static_cast<float>(old.width);
  const float scale_y = static_cast<float>(size.height) / static_cast<float>(old.height);
  resize(sample.objects, size.width, size.height, scale_x, scale_y, sampling);
  sample.scale_x *= scale_x;
  sample.scale_y *= scale_y;
}

void crop(Sample& sample, const cv::Rect& window, int fill, const Visibility& visibility) {
  auto& image = sample.image.pixels();
  const cv::Rect whole({0, 0}, image.size());
  if ((window & whole) == window) {
    image = image(window).clone();  // a view would hold the whole image in memory
  } else {
    cv::Mat canvas(window.size(), image.type(), cv::Scalar::all(fill));
    lay(image, -window.tl(), canvas);
    image = std::move(canvas);
  }
  crop(sample.objects, window, visibility);
}

void warp(Sample& sample, const cv::Matx23d& matrix, int fill, const Visibility& visibility) {
  const auto back = inverse(matrix);
  // OpenCV's pixel i has its centre at i, ours at i + 1/2.
  cv::Matx23d from_centres = back;
  for (int row = 0; row < 2; ++row) from_centres(row, 2) += (back(row, 0) + back(row, 1)) / 2 - 0.5;
  cv::Mat moved;
  cv::warpAffine(sample.image.pixels(), moved, from_centres, sample.image.size(),
                 cv::INTER_LINEAR | cv::WARP_INVERSE_MAP, cv::BORDER_CONSTANT,
                 cv::Scalar::all(fill));
  sample.image = std::move(moved);
  warp(sample.objects, matrix, sample.image.size(), visibility);
}

void lay(const cv::Mat& image, cv::Point corner, cv::Mat& canvas) {
  const auto target = cv::Rect(corner, image.size()) & cv::Rect({0, 0}, canvas.size());
  if (target.empty()) return;
  image(target - corner).copyTo(canvas(target));
}

}  // namespace millrace
