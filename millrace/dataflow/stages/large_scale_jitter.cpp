#include "millrace/dataflow/stages/large_scale_jitter.h"

#include <algorithm>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/ranges.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<LargeScaleJitter>(
    "resizes by a widely random scale, then cuts or pads to one size"));

}  // namespace

void LargeScaleJitter::check() const {
  check_range(kName, "min_scale", min_scale, "max_scale", max_scale);
}

cv::Size LargeScaleJitter::draw(cv::Size image, Rng& rng) const {
  check();
  const double scale = rng.uniform(min_scale, max_scale);
  return fitted_size(image, scale * static_cast<double>(target.width),
                     scale * static_cast<double>(target.height));
}

Sample LargeScaleJitter::operator()(Sample sample, Rng& rng) const {
  resize(sample, draw(image_of(sample, kName).size(), rng));
  return target(std::move(sample), rng);
}

}  // namespace millrace
