#include "millrace/dataflow/stages/color_jitter.h"

#include <utility>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/image/photometry.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<ColorJitter>(
    "changes brightness, contrast, saturation, hue and gamma at random"));

}  // namespace

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

}  // namespace millrace
