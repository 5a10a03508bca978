#include "millrace/dataflow/stages/blur.h"

#include <opencv2/imgproc.hpp>
#include <utility>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/ranges.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<Blur>("blurs an image by chance"));

}  // namespace

void Blur::check() const { check_range(kName, "min_sigma", min_sigma, "max_sigma", max_sigma); }

Sample Blur::operator()(Sample sample, Rng& rng) const {
  check();
  auto& image = pixels(sample, kName);
  if (!rng.chance(probability)) return sample;

  cv::Mat blurred;
  // A kernel of size 0 lets OpenCV choose: 3 deviations either way for 8-bit images.
  cv::GaussianBlur(image, blurred, {0, 0}, rng.uniform(min_sigma, max_sigma));
  image = std::move(blurred);
  return sample;
}

}  // namespace millrace
