#include "millrace/dataflow/stages/mixing.h"

#include <algorithm>
#include <opencv2/core.hpp>
#include <utility>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/stages/crops.h"

namespace millrace {

MILLRACE_REGISTER(register_stage<Mosaic>("joins four images around a random centre"));
MILLRACE_REGISTER(
    register_stage<CopyPaste>("pastes objects of another image, cut out along their masks"));

MILLRACE_REGISTER(
    register_stage<MixUp>("blends the image and its objects with another one, half and half"));

std::size_t Mosaic::partners(const Sample&, Rng& rng) const {
  return rng.chance(probability) ? 3 : 0;
}

cv::Point Mosaic::draw(Rng& rng) const {
  const auto place = [&](std::int64_t side) {
    return static_cast<int>(rng.uniform(min_center, max_center) * static_cast<double>(side));
  };
  const int x = place(width);
  return {x, place(height)};
}

Sample Mosaic::join(std::vector<Sample> samples, cv::Point centre) const {
  const cv::Size size(2 * static_cast<int>(width), 2 * static_cast<int>(height));
  cv::Mat canvas(size, CV_8UC3, cv::Scalar::all(static_cast<double>(pad_value)));
  Instances objects;
  for (std::size_t i = 0; i < 4; ++i) {
    auto& sample = samples[i];
    resize(sample, fitted_size(image_of(sample, kName).size(), static_cast<double>(width),
                               static_cast<double>(height)));
    const cv::Point corner(i % 2 == 0 ? centre.x - sample.image.size().width : centre.x,
                           i < 2 ? centre.y - sample.image.size().height : centre.y);
    copy_overlap(sample.image.pixels(), corner, canvas);
    crop(sample.objects, cv::Rect(-corner, size), visibility);
    append(objects, std::move(sample.objects));
  }
  auto& result = samples.front();
  result.image = std::move(canvas);
  result.objects = std::move(objects);
  return std::move(result);
}

Sample Mosaic::operator()(Sample sample, std::vector<Sample> others, Rng& rng) const {
  if (others.empty()) return sample;
  others.insert(others.begin(), std::move(sample));
  return join(std::move(others), draw(rng));
}

std::size_t CopyPaste::partners(const Sample&, Rng& rng) const {
  return rng.chance(probability) ? 1 : 0;
}

std::vector<bool> CopyPaste::draw(const Instances& other, Rng& rng) const {
  std::vector<bool> chosen(other.size());
  std::vector<std::size_t> possible;
  for (std::size_t i = 0; i < other.size(); ++i) {
    if (other.crowd[i] || std::holds_alternative<std::monostate>(other.segmentations[i])) continue;
    possible.push_back(i);
    chosen[i] = rng.chance(0.5);
  }
  if (!possible.empty() && std::ranges::count(chosen, true) == 0)
    chosen[possible[rng.below(possible.size())]] = true;
  return chosen;
}

Sample CopyPaste::paste(Sample sample, Sample other, const std::vector<bool>& chosen) const {
  auto& image = sample.image.pixels();
  filter_objects(other.objects, chosen);
  std::vector<coco::Rle> masks;
  std::vector<bool> has_pixels;
  for (const auto& shape : other.objects.segmentations) {
    masks.push_back(rasterised(shape, image.size()));
    has_pixels.push_back(coco::area(masks.back()) > 0);
  }
  filter_objects(other.objects, has_pixels);
  if (other.objects.size() == 0) return sample;

  const auto pasted = coco::merge(masks);
  cv::Mat bitmap(image.size(), CV_8U);
  coco::decode(pasted, bitmap.ptr());
  other.image.pixels().copyTo(image, bitmap);
  remove_covered_pixels(sample.objects, pasted, visibility);
  append(sample.objects, std::move(other.objects));
  return sample;
}

Sample CopyPaste::operator()(Sample sample, std::vector<Sample> others, Rng& rng) const {
  if (others.empty()) return sample;
  const auto size = image_of(sample, kName).size();
  const FixedSizeCrop fit{.width = size.width, .height = size.height, .visibility = visibility};
  auto other = fit(std::move(others.front()), rng);
  const auto chosen = draw(other.objects, rng);
  return paste(std::move(sample), std::move(other), chosen);
}

std::size_t MixUp::partners(const Sample& sample, Rng& rng) const {
  return sample.objects.size() > 0 && rng.chance(probability) ? 1 : 0;
}

Sample MixUp::operator()(Sample sample, std::vector<Sample> others, Rng& rng) const {
  if (others.empty()) return sample;
  auto& image = pixels(sample, kName);
  auto& other = others.front();
  const auto scale = rng.uniform(min_scale, max_scale);
  const auto scaled = [&](int side) { return std::max(1, static_cast<int>(scale * side)); };
  const cv::Size frame(scaled(image.cols), scaled(image.rows));
  resize(other, fitted_size(image_of(other, kName).size(), frame.width, frame.height));
  crop(other, cv::Rect({}, frame), static_cast<int>(pad_value), visibility);
  if (rng.chance(0.5)) {
    other.image.mirror();
    mirror(other.objects, frame.width, Direction::horizontal);
  }
  const auto begin = [&](int from, int to) {
    return from > to ? static_cast<int>(rng.below(static_cast<std::uint64_t>(from - to))) : 0;
  };
  const int x = begin(frame.width, image.cols), y = begin(frame.height, image.rows);
  crop(other, cv::Rect(cv::Point(x, y), image.size()), /*fill=*/0, visibility);
  cv::addWeighted(image, 0.5, other.image.pixels(), 0.5, 0, image);
  append(sample.objects, std::move(other.objects));
  return sample;
}

}  // namespace millrace
