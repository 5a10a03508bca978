#include "millrace/dataflow/stages/geometric.h"

#include <cmath>
#include <numbers>
#include <opencv2/core.hpp>
#include <stdexcept>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<Flip>(
    "flips the image and its objects at random, left to right or top to bottom"));
MILLRACE_REGISTER(register_stage<Affine>(
    "scales, rotates, shears and moves the image and its objects in one warp"));

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

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

Affine::Draw Affine::draw(Rng& rng) const {
  Draw drawn;
  drawn.rotation = rng.uniform(-rotation, rotation);
  drawn.scale = rng.uniform(min_scale, max_scale);
  drawn.translate_x = rng.uniform(-translation, translation);
  drawn.translate_y = rng.uniform(-translation, translation);
  drawn.shear_x = rng.uniform(-shear, shear);
  drawn.shear_y = rng.uniform(-shear, shear);
  return drawn;
}

void Affine::check() const {
  check_range(kName, "min_scale", min_scale, "max_scale", max_scale);
  if ((width > 0) != (height > 0))
    throw std::invalid_argument(
        "affine: set both width and height (size of the result) or neither");
}

cv::Matx23d Affine::matrix(const Draw& draw, cv::Size image, cv::Size result) {
  const double sine = draw.scale * std::sin(radians(draw.rotation));
  const double cosine = draw.scale * std::cos(radians(draw.rotation));
  const cv::Matx22d shear(1, std::tan(radians(draw.shear_x)), std::tan(radians(draw.shear_y)), 1);
  const auto turn = shear * cv::Matx22d(cosine, -sine, sine, cosine);
  const cv::Vec2d from(image.width / 2.0, image.height / 2.0);
  const cv::Vec2d to(result.width / 2.0, result.height / 2.0);
  const cv::Vec2d shift(draw.translate_x * result.width, draw.translate_y * result.height);
  const auto origin = to + shift - turn * from;
  return {turn(0, 0), turn(0, 1), origin[0], turn(1, 0), turn(1, 1), origin[1]};
}

Sample Affine::operator()(Sample sample, Rng& rng) const {
  const auto size = image_of(sample, kName).size();
  if (!rng.chance(probability)) return sample;
  const auto result =
      width > 0 ? cv::Size(static_cast<int>(width), static_cast<int>(height)) : size;
  warp(sample, matrix(draw(rng), size, result), static_cast<int>(fill), visibility, result);
  return sample;
}

}  // namespace millrace
