// The source "fake": images without a disk, for measuring the stages after the decoder.
#include <algorithm>
#include <cstring>

#include "millrace/base/random.h"
#include "millrace/dataflow/sources/detection_sources.h"

namespace millrace {
namespace {

struct FakeOptions {
  std::int64_t count = 1000;
  std::int64_t width = 640, height = 480;
  std::int64_t objects = 8;
  std::int64_t seed = 1;

  void describe(Options& o) {
    o.add("count", count, "number of images", {.min = 1, .max = 1e9, .unit = "images"});
    o.add("width", width, "width of each image", {.min = 1, .max = 16384, .unit = "pixels"});
    o.add("height", height, "height of each image", {.min = 1, .max = 16384, .unit = "pixels"});
    o.add("objects", objects, "objects per image", {.min = 0, .max = 10000});
    o.add("seed", seed, "seed of the images", {.min = 0, .max = kAnySeed});
  }
};

cv::Mat drawn_pixels(const FakeOptions& options, Rng& rng) {
  cv::Mat image(static_cast<int>(options.height), static_cast<int>(options.width), CV_8UC3);
  auto* byte = image.data;
  for (auto left = image.total() * image.elemSize(); left > 0;) {
    const auto bits = rng();
    const auto part = std::min(left, sizeof(bits));
    std::memcpy(byte, &bits, part);
    byte += part;
    left -= part;
  }
  return image;
}

/// Draws a box with corners on whole pixels, at least one pixel wide and high.
Box drawn_box(const FakeOptions& options, Rng& rng) {
  const auto x1 = rng.between(0, options.width - 1), y1 = rng.between(0, options.height - 1);
  return {static_cast<float>(x1), static_cast<float>(y1),
          static_cast<float>(rng.between(x1 + 1, options.width)),
          static_cast<float>(rng.between(y1 + 1, options.height))};
}

coco::Segmentation outline(const Box& box) {
  return std::vector<coco::Polygon>{
      {box.x1, box.y1, box.x2, box.y1, box.x2, box.y2, box.x1, box.y2}};
}

class Fake final : public Source<Sample> {
 public:
  Fake(const FakeOptions& options, std::size_t classes) : options_(options), classes_(classes) {}

  std::int64_t size() const override { return options_.count; }

  Sample operator[](std::int64_t index) const override {
    auto sample = about(index);
    auto rng = rng_of(index, /*what=*/1);
    sample.image = drawn_pixels(options_, rng);
    return sample;
  }

  Sample about(std::int64_t index) const override {
    auto rng = rng_of(index, /*what=*/0);
    Sample sample;
    sample.image_id = index + 1;
    sample.path = "fake image " + std::to_string(sample.image_id);
    sample.width = static_cast<std::int32_t>(options_.width);
    sample.height = static_cast<std::int32_t>(options_.height);
    for (std::int64_t i = 0; i < options_.objects; ++i) {
      const auto box = drawn_box(options_, rng);
      sample.objects.boxes.push_back(box);
      sample.objects.classes.push_back(static_cast<std::int32_t>(rng.below(classes_)));
      sample.objects.crowd.push_back(0);
      sample.objects.segmentations.push_back(outline(box));
    }
    return sample;
  }

 private:
  Rng rng_of(std::int64_t index, std::uint64_t what) const {
    return {static_cast<std::uint64_t>(options_.seed), static_cast<std::uint64_t>(index), what};
  }

  FakeOptions options_;
  std::size_t classes_;
};

MILLRACE_REGISTER(register_source<FakeOptions>(
    "fake", "random pixels and boxes without a disk, to measure the flow without its input",
    [](const FakeOptions& options, const SourceContext& context) {
      return std::make_shared<const Fake>(options, context.classes.size());
    }));

}  // namespace
}  // namespace millrace
