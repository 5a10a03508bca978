
#include <ATen/ops/arange.h>
#include <sys/resource.h>

#include <cmath>
#include <numbers>

#include "millrace/models/ops/roi_align.h"
#include "tests/models/operators.h"
#include "tests/support/mask_targets.h"

namespace millrace::testing {
namespace {

/// Stars in an image of height x width pixels, with two regions per star. Every third star is an
/// RLE, the others are polygons.
struct Shapes {
  std::uint32_t height, width;
  std::vector<coco::Segmentation> stars;
  std::vector<const coco::Segmentation*> matched;
  at::Tensor boxes;

  Shapes(int count, std::uint32_t h, std::uint32_t w, double largest) : height(h), width(w) {
    Rng rng{7};
    std::vector<float> corners;
    for (int i = 0; i < count; ++i) {
      const double cx = rng.uniform(0, w), cy = rng.uniform(0, h), r = rng.uniform(3, largest);
      coco::Polygon polygon;
      for (int p = 0; p < 14; ++p) {
        const double angle = p * std::numbers::pi / 7, reach = p % 2 ? r : r / 2;
        polygon.push_back(std::clamp(cx + reach * std::cos(angle), 0.0, double(w)));
        polygon.push_back(std::clamp(cy + reach * std::sin(angle), 0.0, double(h)));
      }
      if (i % 3 == 0)
        stars.emplace_back(coco::from_polygons({&polygon, 1}, h, w));
      else
        stars.emplace_back(std::vector<coco::Polygon>{polygon});
      for (const double shift : {0.0, 0.4 * r}) {
        for (const double side : {cx - r, cy - r, cx + r, cy + r})
          corners.push_back(static_cast<float>(side + shift));
      }
    }
    for (const auto& star : stars) matched.insert(matched.end(), 2, &star);
    boxes = boxes_of(corners);
  }

  at::Tensor targets(MaskTarget kind) const {
    return mask_targets(matched, boxes, 28, kind, height, width);
  }
};

TEST(SoftMaskTargets, MatchRoiAlignOfWholeBitmaps) {
  const Shapes shapes(20, 170, 233, 90);
  auto bitmaps = at::zeros({20, 1, shapes.height, shapes.width}, at::kByte);
  for (std::int64_t i = 0; i < 20; ++i) {
    const auto& star = shapes.stars[static_cast<std::size_t>(i)];
    const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&star);
    coco::decode(polygons ? coco::from_polygons(*polygons, shapes.height, shapes.width)
                          : std::get<coco::Rle>(star),
                 bitmaps[i].mutable_data_ptr<std::uint8_t>());
  }
  const auto star = at::arange(40).div(2, "floor").to(at::kFloat).unsqueeze(1);
  const auto rois = at::cat({star, shapes.boxes}, 1);
  const auto expected =
      roi_align({bitmaps.to(at::kFloat)}, rois, {}, {.height = 28, .width = 28, .aligned = false});
  EXPECT_TRUE(tensors_close(shapes.targets(MaskTarget::soft), expected.squeeze(1), 1e-6));
}

#if !defined(__SANITIZE_ADDRESS__)  // AddressSanitizer keeps freed memory for a while.
TEST(SoftMaskTargets, DoNotAllocateWholeBitmaps) {
  const Shapes shapes(200, 2000, 2000, 60);  // as floats, the bitmaps would take 3 GiB
  rusage usage{};
  shapes.targets(MaskTarget::soft);
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1024 * 1024);
}
#endif

TEST(MaskTargets, DoNotDependOnThreadCount) {
  const Shapes shapes(30, 300, 300, 90);
  expect_same_on_any_threads([&] {
    return std::vector{shapes.targets(MaskTarget::soft), shapes.targets(MaskTarget::binary)};
  });
}

TEST(MaskTargets, MatchSoftTargetsExceptAtOutline) {
  const Shapes shapes(30, 300, 300, 90);
  const auto soft = shapes.targets(MaskTarget::soft), binary = shapes.targets(MaskTarget::binary);
  EXPECT_TRUE(binary.eq(0).logical_or(binary.eq(1)).all().item<bool>());
  const auto differ = (soft.ge(0.5).to(at::kFloat) - binary).abs().mean().item<double>();
  EXPECT_LT(differ, 0.05);
}

TEST(MaskTargets, AreEmptyForInvalidRegions) {
  Shapes shapes(2, 50, 60, 20);
  shapes.boxes.slice(0, 0, 1).fill_(kNan);
  shapes.boxes.slice(0, 1, 2).fill_(1e6);
  for (const auto kind : {MaskTarget::soft, MaskTarget::binary})
    EXPECT_TRUE(tensors_equal(shapes.targets(kind).slice(0, 0, 2), at::zeros({2, 28, 28})))
        << value_name(kind);
}

}  // namespace
}  // namespace millrace::testing
