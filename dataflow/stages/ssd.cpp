#include "millrace/dataflow/stages/ssd.h"

#include <algorithm>
#include <opencv2/core.hpp>
#include <utility>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/stages/colors.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<PhotometricDistort>(
    "changes brightness, contrast, saturation, hue and channel order, each at random"));
MILLRACE_REGISTER(register_stage<ZoomOut>("places the image at random on a larger canvas"));
MILLRACE_REGISTER(register_stage<IouCrop>(
    "crops at random to a window that overlaps an object by at least a drawn IoU"));

constexpr int kRounds = 50;  // draws of min_iou

bool holds_centre(const cv::Rect& window, const Box& box) {
  const auto x = (box.x1 + box.x2) / 2, y = (box.y1 + box.y2) / 2;
  return static_cast<float>(window.x) < x && x < static_cast<float>(window.x + window.width) &&
         static_cast<float>(window.y) < y && y < static_cast<float>(window.y + window.height);
}

double iou(const cv::Rect& window, const Box& box) {
  const auto x = static_cast<double>(window.x), y = static_cast<double>(window.y);
  const double width = std::min<double>(box.x2, x + window.width) - std::max<double>(box.x1, x);
  const double height = std::min<double>(box.y2, y + window.height) - std::max<double>(box.y1, y);
  if (width <= 0 || height <= 0) return 0;
  const double common = width * height;
  return common / (window.area() + static_cast<double>(box.area()) - common);
}

}  // namespace

PhotometricDistort::Draw PhotometricDistort::draw(Rng& rng) const {
  const auto by_chance = [&](double least, double most, double unchanged) {
    return rng.chance(probability) ? rng.uniform(least, most) : unchanged;
  };
  Draw drawn;
  drawn.brightness = by_chance(1 - brightness, 1 + brightness, 1);
  drawn.contrast = by_chance(1 - contrast, 1 + contrast, 1);
  drawn.contrast_last = rng.chance(0.5);
  drawn.saturation = by_chance(1 - saturation, 1 + saturation, 1);
  drawn.hue = by_chance(-hue, hue, 0);
  if (rng.chance(probability))
    for (std::size_t i = drawn.channels.size(); i > 1; --i)
      std::swap(drawn.channels[i - 1], drawn.channels[rng.below(i)]);
  return drawn;
}

Sample PhotometricDistort::operator()(Sample sample, Rng& rng) const {
  auto& image = pixels(sample, kName);
  const auto drawn = draw(rng);
  if (drawn.brightness != 1) image = photometry::brightness(image, drawn.brightness);
  if (drawn.contrast != 1 && !drawn.contrast_last)
    image = photometry::contrast(image, drawn.contrast);
  if (drawn.saturation != 1) image = photometry::saturation(image, drawn.saturation);
  if (drawn.hue != 0) image = photometry::hue(image, drawn.hue);
  if (drawn.contrast != 1 && drawn.contrast_last)
    image = photometry::contrast(image, drawn.contrast);
  if (drawn.channels != std::array{0, 1, 2}) {
    cv::Mat mixed(image.size(), image.type());
    const auto& from = drawn.channels;
    cv::mixChannels({image}, {mixed}, {from[0], 0, from[1], 1, from[2], 2});
    image = mixed;
  }
  return sample;
}

cv::Rect ZoomOut::draw(cv::Size image, Rng& rng) const {
  const double scale = rng.uniform(min_scale, max_scale);
  const cv::Size canvas(static_cast<int>(image.width * scale),
                        static_cast<int>(image.height * scale));
  const auto left = static_cast<int>(rng.between(0, canvas.width - image.width));
  return {cv::Point(-left, -static_cast<int>(rng.between(0, canvas.height - image.height))),
          canvas};
}

std::optional<cv::Size> ZoomOut::largest_output(std::optional<cv::Size> input) const {
  if (!input || probability == 0) return input;
  return cv::Size(static_cast<int>(input->width * max_scale),
                  static_cast<int>(input->height * max_scale));
}

Sample ZoomOut::operator()(Sample sample, Rng& rng) const {
  const auto size = image_of(sample, kName).size();
  if (rng.chance(probability))
    crop(sample, draw(size, rng), static_cast<int>(fill), Visibility{.min_area = 0});
  return sample;
}

cv::Rect IouCrop::draw(const Sample& sample, Rng& rng) const {
  const auto image = sample.image.size();
  const cv::Rect whole({0, 0}, image);
  const auto& boxes = sample.objects.boxes;
  for (int round = 0; round < kRounds; ++round) {
    const double least = min_iou[rng.below(min_iou.size())];
    if (least >= 1 || boxes.empty()) return whole;
    for (std::int64_t trial = 0; trial < trials; ++trial) {
      const auto side = [&](int full) {
        return std::max(1, static_cast<int>(full * rng.uniform(min_scale, max_scale)));
      };
      const int width = side(image.width);
      const cv::Size size(width, side(image.height));
      const double ratio = static_cast<double>(size.width) / size.height;
      if (ratio < min_ratio || ratio > max_ratio) continue;
      const auto left = static_cast<int>(rng.between(0, image.width - size.width));
      const cv::Rect window({left, static_cast<int>(rng.between(0, image.height - size.height))},
                            size);
      const bool suits = std::ranges::any_of(boxes, [&](const Box& box) {
        return holds_centre(window, box) && iou(window, box) >= least;
      });
      if (suits) return window;
    }
  }
  return whole;
}

Sample IouCrop::operator()(Sample sample, Rng& rng) const {
  const cv::Rect whole({0, 0}, image_of(sample, kName).size());
  if (!rng.chance(probability)) return sample;
  const auto window = draw(sample, rng);
  if (window == whole) return sample;
  std::vector<bool> stays;
  for (const auto& box : sample.objects.boxes) stays.push_back(holds_centre(window, box));
  filter_objects(sample.objects, stays);
  crop(sample, window, /*fill=*/0, visibility);
  return sample;
}

}  // namespace millrace
