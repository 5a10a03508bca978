#include "millrace/dataflow/image/photometry.h"

#include <cmath>
#include <opencv2/imgproc.hpp>

namespace millrace::photometry {
namespace {

/// Every level of channel c becomes curve(c, level).
template <class Curve>
cv::Mat through(const cv::Mat& image, Curve curve) {
  cv::Mat table(1, 256, CV_8UC3), result;
  for (int level = 0; level < 256; ++level)
    for (int channel = 0; channel < 3; ++channel)
      table.at<cv::Vec3b>(level)[channel] =
          cv::saturate_cast<std::uint8_t>(std::round(curve(channel, static_cast<double>(level))));
  cv::LUT(image, table, result);
  return result;
}

}  // namespace

cv::Mat brightness(const cv::Mat& image, double factor) {
  return through(image, [factor](int, double level) { return factor * level; });
}

cv::Mat contrast(const cv::Mat& image, double factor) {
  const auto means = cv::mean(image);
  const double grey = kLuma.dot(cv::Vec3d(means[0], means[1], means[2]));
  return through(image, [=](int, double level) { return factor * level + (1 - factor) * grey; });
}

cv::Mat saturation(const cv::Mat& image, double factor) {
  cv::Matx33d mixing = cv::Matx33d::eye() * factor;
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 3; ++column) mixing(row, column) += (1 - factor) * kLuma[column];
  cv::Mat result;
  cv::transform(image, result, mixing);
  return result;
}

cv::Mat hue(const cv::Mat& image, double turns) {
  const auto steps = static_cast<int>(std::lround(256 * turns));
  cv::Mat result;
  cv::cvtColor(image, result, cv::COLOR_RGB2HSV_FULL);
  cv::Mat table(1, 256, CV_8UC3);
  for (int level = 0; level < 256; ++level) {
    const auto same = static_cast<std::uint8_t>(level);
    table.at<cv::Vec3b>(level) = {static_cast<std::uint8_t>((level + steps) & 255), same, same};
  }
  cv::LUT(result, table, result);
  cv::cvtColor(result, result, cv::COLOR_HSV2RGB_FULL);
  return result;
}

cv::Mat gamma(const cv::Mat& image, double exponent) {
  return through(image, [=](int, double level) { return 255 * std::pow(level / 255, exponent); });
}

cv::Mat shift(const cv::Mat& image, const cv::Vec3d& levels) {
  return through(image, [&](int channel, double level) { return level + levels[channel]; });
}

}  // namespace millrace::photometry
