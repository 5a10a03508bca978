// use = "fake": images that need no disk, to measure what stands behind the decoder.
#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "dataflow/detection_sources.h"

namespace millrace {
namespace {

struct FakeOptions {
  std::int64_t count = 1000;
  std::int64_t width = 640, height = 480;
  std::int64_t objects = 8;
  std::int64_t seed = 1;

  void describe(Options& o) {
    o.add("count", count, "how many", {.min = 1, .unit = "images"});
    o.add("width", width, "of each image", {.min = 1, .max = 16384, .unit = "pixels"});
    o.add("height", height, "of each image", {.min = 1, .max = 16384, .unit = "pixels"});
    o.add("objects", objects, "in each image", {.min = 0, .max = 10000});
    o.add("seed", seed, "the same seed gives the same images", {.min = 0});
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

/// A box with corners on whole pixels, at least one pixel wide and high.
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

Sample fake(const FakeOptions& options, std::size_t classes, std::int64_t index) {
  Rng rng{static_cast<std::uint64_t>(options.seed), static_cast<std::uint64_t>(index)};
  Sample sample;
  sample.image_id = index + 1;
  sample.path = "fake image " + std::to_string(sample.image_id);
  sample.width = static_cast<std::int32_t>(options.width);
  sample.height = static_cast<std::int32_t>(options.height);
  sample.image = drawn_pixels(options, rng);
  for (std::int64_t i = 0; i < options.objects; ++i) {
    const auto box = drawn_box(options, rng);
    sample.objects.boxes.push_back(box);
    sample.objects.classes.push_back(static_cast<std::int32_t>(rng.below(classes)));
    sample.objects.crowd.push_back(0);
    sample.objects.segmentations.push_back(outline(box));
  }
  return sample;
}

const bool registered = register_source<FakeOptions>(
    "fake", "random pixels and boxes, without a disk: what the flow costs without its input",
    [](const FakeOptions& options, const SourceContext& context) {
      return generate(options.count, [options, classes = context.classes.size()](std::int64_t i) {
        return fake(options, classes, i);
      });
    });

}  // namespace
}  // namespace millrace
