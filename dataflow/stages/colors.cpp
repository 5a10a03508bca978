#include "millrace/dataflow/stages/colors.h"

#include <cmath>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace photometry {
namespace {

const cv::Vec3d kLuma{0.299, 0.587, 0.114};

/// Replaces every level of channel c by curve(c, level).
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

}  // namespace photometry

MILLRACE_REGISTER(register_stage<ColorJitter>(
    "changes brightness, contrast, saturation, hue and gamma at random"));
MILLRACE_REGISTER(
    register_stage<HsvShift>("shifts hue, saturation and value of an image at random"));
MILLRACE_REGISTER(register_stage<Grayscale>("makes an image grey at random"));
MILLRACE_REGISTER(
    register_stage<Lighting>("adds a random colour along ImageNet's principal components"));
MILLRACE_REGISTER(register_stage<Blur>("blurs an image at random"));
MILLRACE_REGISTER(register_stage<Noise>("adds noise to an image at random"));

std::array<int, 3> HsvShift::draw(Rng& rng) const {
  constexpr std::int64_t kHueStep = 2;  // degrees per hue level in OpenCV
  std::array<int, 3> steps{};
  const std::array most{hue / kHueStep, saturation, value};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto step = static_cast<int>(rng.uniform(-1, 1) * static_cast<double>(most[i]));
    if (rng.chance(0.5)) steps[i] = step;
  }
  return steps;
}

cv::Mat HsvShift::apply(const cv::Mat& image, const std::array<int, 3>& steps) {
  constexpr int kHues = 180;
  cv::Mat table(1, 256, CV_8UC3), result;
  for (int level = 0; level < 256; ++level)
    table.at<cv::Vec3b>(level) = {static_cast<std::uint8_t>((level + steps[0] + kHues) % kHues),
                                  cv::saturate_cast<std::uint8_t>(level + steps[1]),
                                  cv::saturate_cast<std::uint8_t>(level + steps[2])};
  cv::cvtColor(image, result, cv::COLOR_RGB2HSV);
  cv::LUT(result, table, result);
  cv::cvtColor(result, result, cv::COLOR_HSV2RGB);
  return result;
}

Sample HsvShift::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  image = apply(image, draw(rng));
  return sample;
}

ColorJitter::Draw ColorJitter::draw(Rng& rng) const {
  const auto around_one = [&](double most) { return rng.uniform(1 - most, 1 + most); };
  Draw drawn;
  drawn.brightness = around_one(brightness);
  drawn.contrast = around_one(contrast);
  drawn.saturation = around_one(saturation);
  drawn.hue = rng.uniform(-hue, hue);
  drawn.gamma = around_one(gamma);
  for (std::size_t i = drawn.order.size(); i > 1; --i)
    std::swap(drawn.order[i - 1], drawn.order[rng.below(i)]);
  return drawn;
}

cv::Mat ColorJitter::apply(cv::Mat image, const Draw& draw) {
  for (const int step : draw.order) {
    if (step == 0 && draw.brightness != 1) image = photometry::brightness(image, draw.brightness);
    if (step == 1 && draw.contrast != 1) image = photometry::contrast(image, draw.contrast);
    if (step == 2 && draw.saturation != 1) image = photometry::saturation(image, draw.saturation);
    if (step == 3 && draw.hue != 0) image = photometry::hue(image, draw.hue);
    if (step == 4 && draw.gamma != 1) image = photometry::gamma(image, draw.gamma);
  }
  return image;
}

Sample ColorJitter::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  if (rng.chance(probability)) image = apply(image, draw(rng));
  return sample;
}

Sample Grayscale::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  if (rng.chance(probability)) image = photometry::saturation(image, 0);
  return sample;
}

cv::Vec3d Lighting::draw(Rng& rng) const {
  constexpr double kEigenvalues[3] = {0.2175 * 255, 0.0188 * 255, 0.0045 * 255};
  static const cv::Matx33d kEigenvectors(-0.5675, 0.7192, 0.4009,    // red
                                         -0.5808, -0.0045, -0.8140,  // green
                                         -0.5836, -0.6948, 0.4203);  // blue
  cv::Vec3d weights;
  for (int i = 0; i < 3; ++i) weights[i] = deviation * rng.normal() * kEigenvalues[i];
  return kEigenvectors * weights;
}

Sample Lighting::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  image = photometry::shift(image, draw(rng));
  return sample;
}

Sample Blur::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  if (!rng.chance(probability)) return sample;
  cv::Mat blurred;
  // A kernel of size 0 lets OpenCV choose: 3 deviations to each side for 8-bit images.
  cv::GaussianBlur(image, blurred, {0, 0}, rng.uniform(min_sigma, max_sigma));
  image = std::move(blurred);
  return sample;
}

Sample Noise::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  if (!rng.chance(probability)) return sample;
  cv::Mat noise(image.size(), CV_16SC3), noisy;
  const double sigma = rng.uniform(0, max_sigma);
  // OpenCV's generator fills an image many times faster than Rng, which provides its seed.
  cv::RNG(rng()).fill(noise, cv::RNG::NORMAL, 0, sigma);
  cv::add(image, noise, noisy, cv::noArray(), CV_8U);
  image = noisy;
  return sample;
}

}  // namespace millrace
