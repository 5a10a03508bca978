#include "millrace/dataflow/stages/flip.h"

#include <opencv2/core.hpp>
#include <stdexcept>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_map<Sample, Flip>(
    "mirrors the image and its objects by chance, left to right or top to bottom"));

Direction direction_of(const std::string& name) {
  if (name == "horizontal") return Direction::horizontal;
  if (name == "vertical") return Direction::vertical;
  throw std::invalid_argument("flip: direction is horizontal or vertical, not " + name);
}

}  // namespace

Sample Flip::operator()(Sample sample, Rng& rng) const {
  if (!rng.chance(probability)) return sample;

  auto& image = image_of(sample, kName);
  const auto way = direction_of(direction);
  const auto size = image.size();
  if (way == Direction::horizontal)
    image.mirror();
  else
    cv::flip(image.pixels(), image.pixels(), /*flipCode=*/0);
  mirror(sample.objects, way == Direction::horizontal ? size.width : size.height, way);
  return sample;
}

}  // namespace millrace
