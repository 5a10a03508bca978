#include "millrace/dataflow/stages/fixed_size_crop.h"

#include <algorithm>

#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<FixedSizeCrop>(
    "cuts or pads every image to one size, at a random place where it cuts"));

}  // namespace

cv::Rect FixedSizeCrop::draw(cv::Size image, Rng& rng) const {
  const auto begin = [&](int length, std::int64_t wanted) {
    return static_cast<int>(rng.between(0, std::max<std::int64_t>(0, length - wanted)));
  };
  const int x = begin(image.width, width);
  return {x, begin(image.height, height), static_cast<int>(width), static_cast<int>(height)};
}

Sample FixedSizeCrop::operator()(Sample sample, Rng& rng) const {
  const auto window = draw(image_of(sample, kName).size(), rng);
  crop(sample, window, static_cast<int>(pad_value), visibility);
  return sample;
}

}  // namespace millrace
