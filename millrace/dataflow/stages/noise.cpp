#include "millrace/dataflow/stages/noise.h"

#include <opencv2/core.hpp>

#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<Noise>("adds noise to an image by chance"));

}  // namespace

Sample Noise::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  if (!rng.chance(probability)) return sample;

  cv::Mat noise(image.size(), CV_16SC3);
  const double sigma = rng.uniform(0, max_sigma);
  // OpenCV's generator fills an image many times faster than ours; its seed comes from ours.
  cv::RNG(rng()).fill(noise, cv::RNG::NORMAL, 0, sigma);
  cv::Mat noisy;
  cv::add(image, noise, noisy, cv::noArray(), CV_8U);
  image = noisy;
  return sample;
}

}  // namespace millrace
