// [[data.stages]] type = "cutout": covers random squares of an image, so that a detector learns not
// to depend on a single part of an object (DeVries and Taylor 2017).
#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <string_view>

#include <millrace/dataflow/detection/detection_stages.h>

namespace {

using namespace millrace;

/// A stage is a function object that is called from many threads at once. It does not modify itself
/// and takes all random numbers from the given Rng, so that the same seed gives the same bytes for
/// any number of threads.
struct Cutout {
  static constexpr std::string_view kName = "cutout";
  static constexpr std::string_view kAfter = "decode";  // needs pixels
  double probability = 0.5;
  std::int64_t squares = 2;
  double max_side = 0.25;
  std::int64_t fill = 114;

  Sample operator()(Sample sample, Rng& rng) const {
    auto& image = pixels(sample, kName);  // [H, W, 3] RGB bytes
    if (!rng.chance(probability)) return sample;

    for (std::int64_t i = 0; i < squares; ++i) {
      const double side = rng.uniform(0, max_side) * std::min(image.cols, image.rows);
      const cv::Point2d corner(rng.uniform(0, image.cols) - side / 2,
                               rng.uniform(0, image.rows) - side / 2);
      const cv::Rect square(cv::Point(corner),
                            cv::Size(static_cast<int>(side), static_cast<int>(side)));
      cv::rectangle(image, square, cv::Scalar::all(static_cast<double>(fill)), cv::FILLED);
    }
    return sample;
  }

  void describe(Options& o) {
    o.add("probability", probability, "probability of changing an image", {.min = 0, .max = 1});
    o.add("squares", squares, "number of squares per image", {.min = 1, .max = 100});
    o.add("max_side", max_side,
          "maximum side of a square, as a fraction of the image's shorter side",
          {.min = 0, .max = 1});
    o.add("fill", fill, "grey value of the squares", {.min = 0, .max = 255, .unit = "levels"});
  }
};

MILLRACE_REGISTER(register_stage<Cutout>("covers random squares of an image"));

}  // namespace
