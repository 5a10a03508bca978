#include "millrace/dataflow/stages/crops.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(
    register_stage<RandomCrop>("crops the image to a random window, optionally of random size"));
MILLRACE_REGISTER(register_stage<FixedSizeCrop>(
    "crops or pads every image to one size; crops are at random places"));
MILLRACE_REGISTER(register_stage<LargeScaleJitter>(
    "resizes by a random scale from a wide range, then crops or pads to one size"));

/// Draws the start of a window of `length` that contains `centre` and stays in the image.
std::int64_t begin_around(double centre, int length, int image, Rng& rng) {
  const auto last = static_cast<std::int64_t>(image - length);
  const auto low = static_cast<std::int64_t>(std::ceil(centre)) - length;
  const auto high = static_cast<std::int64_t>(std::floor(centre));
  return rng.between(std::clamp<std::int64_t>(low, 0, last),
                     std::clamp<std::int64_t>(high, 0, last));
}

bool leaves_an_object(Instances objects, const cv::Rect& window, const Visibility& visibility) {
  crop(objects, window, visibility);
  return std::ranges::count(objects.crowd, 0) > 0;
}

}  // namespace

void RandomCrop::check() const {
  if (size.size() != 2) throw std::invalid_argument("random_crop: size must have two values");
  if (crop_type == Type::relative || crop_type == Type::relative_range) {
    if (!std::ranges::all_of(size, [](double share) { return share > 0 && share <= 1; }))
      throw std::invalid_argument(
          "random_crop: size: fractions of the image must be above 0 and at most 1");
  } else {
    if (!std::ranges::all_of(size, [](double n) { return n >= 1 && n == std::floor(n); }))
      throw std::invalid_argument("random_crop: size: must be whole pixels, at least 1");
    if (crop_type == Type::absolute_range && size[0] > size[1])
      throw std::invalid_argument("random_crop: size: a range must be [lowest, highest]");
  }
}

cv::Size RandomCrop::draw_size(cv::Size image, Rng& rng) const {
  const auto side = [&](int full, double number) {
    if (crop_type == Type::absolute) return std::min(full, static_cast<int>(number));
    if (crop_type == Type::absolute_range)
      return static_cast<int>(rng.between(std::min<std::int64_t>(full, std::lround(size[0])),
                                          std::min<std::int64_t>(full, std::lround(size[1]))));
    const double share = crop_type == Type::relative ? number : rng.uniform(number, 1);
    return std::max(1, static_cast<int>(full * share + 0.5));
  };
  const int width = side(image.width, size[0]);
  return {width, side(image.height, size[1])};
}

cv::Rect RandomCrop::draw(const Sample& sample, Rng& rng) const {
  constexpr int kDraws = 10;
  const auto image = sample.image.size();
  const auto& objects = sample.objects;
  const auto window = draw_size(image, rng);
  std::vector<std::size_t> single;
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (!objects.crowd[i]) single.push_back(i);

  if (!keep_object || single.empty()) {
    const auto x = static_cast<int>(rng.between(0, image.width - window.width));
    return {cv::Point(x, static_cast<int>(rng.between(0, image.height - window.height))), window};
  }
  for (int i = 0; i < kDraws; ++i) {
    const auto& box = objects.boxes[single[rng.below(single.size())]];
    const auto x = begin_around((box.x1 + box.x2) / 2, window.width, image.width, rng);
    const auto y = begin_around((box.y1 + box.y2) / 2, window.height, image.height, rng);
    const cv::Rect place({static_cast<int>(x), static_cast<int>(y)}, window);
    if (leaves_an_object(objects, place, visibility)) return place;
  }
  return {{0, 0}, image};
}

Sample RandomCrop::operator()(Sample sample, Rng& rng) const {
  pixels(sample, kName);
  crop(sample, draw(sample, rng), /*fill=*/0, visibility);
  return sample;
}

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

cv::Size LargeScaleJitter::draw(cv::Size image, Rng& rng) const {
  const double scale = rng.uniform(min_scale, max_scale);
  return fitted_size(image, scale * static_cast<double>(target.width),
                     scale * static_cast<double>(target.height));
}

Sample LargeScaleJitter::operator()(Sample sample, Rng& rng) const {
  resize(sample, draw(image_of(sample, kName).size(), rng));
  return target(std::move(sample), rng);
}

}  // namespace millrace
