// Compares the processing of images, boxes and masks outside the network with torchvision's.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <fstream>

#include "millrace/coco/masks/masks.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/models/layers/results.h"
#include "tests/parity/encoded.h"
#include "tests/parity/golden_cases.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

/// Returns the case's image as bytes, with its boxes and masks.
Sample sample_of(const GoldenCase& golden) {
  const auto bytes = (golden["image"] * 255).round().to(at::kByte).permute({1, 2, 0}).contiguous();
  Sample sample;
  sample.image = cv::Mat(static_cast<int>(bytes.size(0)), static_cast<int>(bytes.size(1)), CV_8UC3,
                         bytes.data_ptr<std::uint8_t>())
                     .clone();
  const auto* box = golden["boxes"].data_ptr<float>();
  const auto& masks = golden["masks"];
  for (std::int64_t i = 0; i < golden["boxes"].size(0); ++i, box += 4) {
    sample.objects.boxes.push_back({box[0], box[1], box[2], box[3]});
    sample.objects.segmentations.emplace_back(encoded(masks[i % masks.size(0)]));
  }
  sample.objects.classes.resize(sample.objects.size());
  sample.objects.crowd.resize(sample.objects.size());
  return sample;
}

TEST(ResizeParity, MatchesTruncatedSizes) {
  each_case("resize", "size_", [&](const GoldenCase& golden) {
    const auto& from = golden["hw"];
    auto sizes = golden["output"].clone();
    for (std::int64_t i = 0; i < from.size(0); ++i) {
      const auto size =
          torchvision_size({from[i][1].item<int>(), from[i][0].item<int>()},
                           golden.parameters["min_size"], golden.parameters["max_size"]);
      sizes[i][0] = size.height;
      sizes[i][1] = size.width;
    }
    EXPECT_TRUE(tensors_equal(sizes, golden["output"]));
  });
}

TEST(ResizeParity, MatchesImagesBoxesAndMasks) {
  each_case("resize", "r", [&](const GoldenCase& golden) {
    const ResizeShortestEdge stage{.short_side = {golden.parameters["min_size"]},
                                   .max_side = golden.parameters["max_size"],
                                   .style = ResizeStyle::torchvision};
    Rng rng{1};
    auto sample = stage(sample_of(golden), rng);

    const auto& pixels = sample.image.pixels();
    const auto& image = golden["output"];  // [3, H, W]
    ASSERT_EQ(pixels.rows, image.size(1));
    ASSERT_EQ(pixels.cols, image.size(2));
    double most = 0;
    for (int y = 0; y < pixels.rows; ++y)
      for (int x = 0; x < pixels.cols; ++x)
        for (int c = 0; c < 3; ++c)
          most = std::max(
              most, std::abs(pixels.at<cv::Vec3b>(y, x)[c] - 255.0 * image[c][y][x].item<float>()));
    EXPECT_LT(most, 1.5) << "pixel values: input and output are rounded, and weights have 11 bits";

    const auto& boxes = golden["out_boxes"];
    for (std::int64_t i = 0; i < boxes.size(0); ++i) {
      const auto& box = sample.objects.boxes[static_cast<std::size_t>(i)];
      const float sides[] = {box.x1, box.y1, box.x2, box.y2};
      for (int side = 0; side < 4; ++side)
        EXPECT_NEAR(sides[side], boxes[i][side].item<float>(), 2e-5);
    }
    const auto& masks = golden["out_masks"];
    for (std::int64_t i = 0; i < masks.size(0); ++i)
      EXPECT_EQ(std::get<coco::Rle>(sample.objects.segmentations[static_cast<std::size_t>(i)]),
                encoded(masks[i]));
  });
}

TEST(PasteParity, MatchesMasksPixelForPixel) {
  each_case("paste_masks", "p", [&](const GoldenCase& golden) {
    const auto masks = golden["masks"].contiguous();
    const auto* box = golden["boxes"].data_ptr<float>();
    const auto size = masks.size(-1);
    for (std::int64_t i = 0; i < masks.size(0); ++i, box += 4)
      EXPECT_EQ(paste_mask(MaskPaste::padded, masks[i].data_ptr<float>(), size,
                           {box[0], box[1], box[2], box[3]}, golden.parameters["H"],
                           golden.parameters["W"]),
                encoded(golden["binary"][i]))
          << "mask " << i;
  });
}

TEST(PolygonParity, MatchesPycocotools) {
  const auto cases = nlohmann::json::parse(std::ifstream("tests/parity/goldens/ops/polygons.json"));
  for (const auto& golden : cases) {
    const auto polygons = golden["polygons"].get<std::vector<coco::Polygon>>();
    const auto mask = coco::from_polygons(polygons, golden["h"], golden["w"]);
    SCOPED_TRACE(golden["rle"].get<std::string>());
    EXPECT_EQ(coco::encode_counts(mask), golden["rle"]);
    EXPECT_EQ(coco::area(mask), golden["area"]);
    const auto box = coco::bounding_box(mask);
    const std::vector<double> sides = {box.x1, box.y1, box.width(), box.height()};
    EXPECT_EQ(sides, golden["bbox"].get<std::vector<double>>());
  }
}

}  // namespace
}  // namespace millrace::testing
