#include "millrace/dataflow/stages/flip.h"

#include <opencv2/core.hpp>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<Flip>(
    "mirrors the image and its objects by chance, left to right or top to bottom"));

}  // namespace

Sample Flip::operator()(Sample sample, Rng& rng) const {
  if (!rng.chance(probability)) return sample;

  auto& image = image_of(sample, kName);
  const auto size = image.size();
  if (direction == Direction::horizontal)
    image.mirror();
  else
    cv::flip(image.pixels(), image.pixels(), /*flipCode=*/0);
  mirror(sample.objects, direction == Direction::horizontal ? size.width : size.height, direction);
  return sample;
}

}  // namespace millrace
