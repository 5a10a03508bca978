#include "millrace/dataflow/stages/mosaic.h"

#include <stdexcept>
#include <utility>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/detection/ranges.h"

namespace millrace {
namespace {

MILLRACE_REGISTER(register_stage<Mosaic>("puts four images together around a random centre"));

}  // namespace

void Mosaic::check() const {
  check_range(kName, "min_center", min_center, "max_center", max_center);
}

std::size_t Mosaic::partners(const Sample&, Rng& rng) const {
  return rng.chance(probability) ? 3 : 0;
}

cv::Point Mosaic::draw(Rng& rng) const {
  check();
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
    lay(sample.image.pixels(), corner, canvas);
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
  if (others.size() != 3) throw std::invalid_argument("mosaic: three further samples are wanted");
  others.insert(others.begin(), std::move(sample));
  return join(std::move(others), draw(rng));
}

}  // namespace millrace
