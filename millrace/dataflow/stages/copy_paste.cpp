#include "millrace/dataflow/stages/copy_paste.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/stages/fixed_size_crop.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(
    register_stage<CopyPaste>("pastes objects of another image, cut out along their masks"));

}  // namespace

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
  auto& image = pixels(sample, kName);
  if (image_of(other, kName).size() != image.size())
    throw std::invalid_argument("copy_paste: the two images differ in size");
  keep(other.objects, chosen);
  std::vector<coco::Rle> masks;
  std::vector<bool> has_pixels;
  for (const auto& shape : other.objects.segmentations) {
    masks.push_back(rasterised(shape, image.size()));
    has_pixels.push_back(coco::area(masks.back()) > 0);
  }
  keep(other.objects, has_pixels);
  if (other.objects.size() == 0) return sample;

  const auto pasted = coco::merge(masks);
  cv::Mat bitmap(image.size(), CV_8U);
  coco::decode(pasted, bitmap.ptr());
  other.image.pixels().copyTo(image, bitmap);
  cover(sample.objects, pasted, visibility);
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

}  // namespace millrace
