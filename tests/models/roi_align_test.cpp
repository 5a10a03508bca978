#include "millrace/models/ops/roi_align.h"

#include <ATen/ops/zeros_like.h>

#include <stdexcept>

#include "millrace/models/ops/map_gradients.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

at::Tensor random_rois(std::int64_t count, std::int64_t images, double extent, double side) {
  const auto image = random_values({count, 1}, 0, static_cast<double>(images), 3).floor();
  return at::cat({image, random_boxes(count, extent, side, 4)}, 1);
}

TEST(RoiAlign, ReturnsPixelIfCellIsCentredOnIt) {
  const auto features = random_values({1, 1, 6, 6}, -1, 1, 1);
  // the pixel in row 3, column 2
  const auto rois = at::tensor({0, 2, 3, 3, 4}, at::kFloat).view({1, 5});
  const auto output = roi_align({features}, rois, {}, {.height = 1, .width = 1});
  EXPECT_EQ(output.item<float>(), features[0][0][3][2].item<float>());
}

// The operator A is linear, so its gradient A' is correct if <g, A d> = <A' g, d> for any g and d.
// Unlike finite differences, this check adds no rounding errors.
TEST(RoiAlign, HasTransposedOperatorAsGradient) {
  const auto rois = random_rois(40, 2, 80, 60);
  const auto levels = random_values({40}, 0, 2, 9).to(at::kLong);
  for (const bool aligned : {false, true})
    for (const std::int64_t ratio : {0, 2})
      for (const auto& [type, tolerance] : {std::pair{at::kFloat, 1e-5}, {at::kDouble, 1e-13}}) {
        const RoiAlignOptions options{5, 4, 0.25, ratio, aligned};
        const auto values = [&, type = type](at::IntArrayRef shape, std::uint64_t seed) {
          return random_values(shape, -1, 1, seed).to(type);
        };
        const std::vector<at::Tensor> maps = {values({2, 19, 20, 24}, 1).requires_grad_(),
                                              values({2, 19, 10, 12}, 2).requires_grad_()},
                                      directions = {values({2, 19, 20, 24}, 3),
                                                    values({2, 19, 10, 12}, 4)};
        const auto weights = values({40, 19, 5, 4}, 5);
        roi_align(maps, rois, levels, options).backward(weights);
        const auto product = [](const at::Tensor& a, const at::Tensor& b) {
          return (a.to(at::kDouble) * b).sum().item<double>();
        };
        EXPECT_NEAR(product(roi_align(directions, rois, levels, options), weights),
                    product(maps[0].grad(), directions[0]) + product(maps[1].grad(), directions[1]),
                    tolerance * static_cast<double>(weights.numel()) / 100);
      }
}

TEST(RoiAlign, DoesNotDependOnThreadCount) {
  const auto rois = random_rois(60, 3, 100, 60);
  const auto weights = random_values({60, 70, 7, 7}, -1, 1, 6);
  const auto levels = random_values({60}, 0, 2, 9).to(at::kLong);
  expect_same_on_any_threads([&] {
    const auto fine = random_values({3, 70, 25, 25}, -1, 1, 7).requires_grad_();
    const auto coarse = random_values({3, 70, 13, 13}, -1, 1, 8).requires_grad_();
    const auto output = roi_align({fine, coarse}, rois, levels, {.scale = 0.25});
    output.backward(weights);
    return std::vector{output.detach(), fine.grad(), coarse.grad()};
  });
}

TEST(RoiAlign, AcceptsAnyMemoryFormat) {
  const auto features = random_values({2, 8, 10, 12}, -1, 1, 1);
  const auto rois = random_rois(9, 2, 10, 8);
  const auto output = roi_align({features}, rois, {}, {});
  EXPECT_TRUE(output.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(tensors_equal(
      roi_align({features.contiguous(at::MemoryFormat::ChannelsLast)}, rois, {}, {}), output));
}

TEST(RoiAlign, AcceptsGradientsOfAnyMemoryFormat) {
  const auto rois = random_rois(30, 2, 40, 30);
  const auto gradient = random_values({30, 70, 7, 5}, -1, 1, 2);
  const auto of = [&](const at::Tensor& given) {
    const auto map = random_values({2, 70, 10, 12}, -1, 1, 1).requires_grad_();
    roi_align({map}, rois, {}, {.height = 7, .width = 5}).backward(given);
    return map.grad();
  };
  const auto expected = of(gradient.contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(tensors_equal(of(gradient), expected));
  EXPECT_TRUE(tensors_equal(of(gradient.transpose(2, 3).contiguous().transpose(2, 3)), expected));
}

TEST(RoiAlign, MatchesPoolingFromEachMap) {
  const auto rois = random_rois(50, 2, 90, 60);
  const auto levels = random_values({50}, 0, 3, 8).to(at::kLong);
  std::vector<at::Tensor> maps, alone;
  for (const std::int64_t side : {24, 12, 6}) {
    maps.push_back(random_values({2, 66, side, side + 1}, -1, 1, 9).requires_grad_());
    alone.push_back(maps.back().detach().clone().requires_grad_());
  }
  const auto weights = random_values({50, 66, 3, 5}, -1, 1, 5);
  const auto output = roi_align(maps, rois, levels, {.height = 3, .width = 5, .scale = 0.25});
  output.backward(weights);
  for (std::size_t level = 0; level < 3; ++level) {
    const auto here = levels.eq(static_cast<std::int64_t>(level)).nonzero().squeeze(1);
    const auto scale = 0.25 / static_cast<double>(1 << level);
    const auto expected = roi_align({alone[level]}, rois.index_select(0, here), {},
                                    {.height = 3, .width = 5, .scale = scale});
    expected.backward(weights.index_select(0, here));
    EXPECT_TRUE(tensors_equal(output.index_select(0, here), expected));
    EXPECT_TRUE(tensors_equal(maps[level].grad(), alone[level].grad()));
  }
}

// The maps are pooled twice, once without the last map, and the first map is also used directly.
TEST(RoiAlign, SumsSharedGradientsOfAllUses) {
  const auto rois = random_rois(40, 2, 90, 60), few = random_rois(5, 2, 60, 50);
  const auto levels = random_values({40}, 0, 3, 8).to(at::kLong);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const auto gradients = [&](bool shares) {
      std::vector<at::Tensor> leaves;
      for (const std::int64_t side : {24, 12, 6})
        leaves.push_back(
            random_values({2, 18, side, side + 1}, -1, 1, 9).to(type).requires_grad_());
      const auto maps = shares ? with_shared_gradients(leaves) : leaves;
      EXPECT_EQ(shared_gradients(maps) != nullptr, shares);
      EXPECT_FALSE(shared_gradients(at::TensorList(maps).slice(1)));
      const auto boxes = roi_align(maps, rois, levels, {.scale = 0.25}),
                 masks = roi_align(at::TensorList(maps).slice(0, 2), few, {}, {.height = 14});
      (boxes.square().sum() + masks.square().sum() + maps[0].square().sum()).backward();
      std::vector<at::Tensor> result;
      for (const auto& leaf : leaves) result.push_back(leaf.grad());
      return result;
    };
    const auto apart = gradients(false), shared = gradients(true);
    for (std::size_t i = 0; i < apart.size(); ++i) {
      EXPECT_EQ(shared[i].scalar_type(), type);
      EXPECT_TRUE(tensors_close(shared[i], apart[i], type == at::kBFloat16 ? 1e-2 : 1e-6)) << i;
    }
  }
}

TEST(RoiAlign, ResetsSharedGradientsInEachBackwardPass) {
  const auto rois = random_rois(20, 2, 40, 30);
  const auto leaf = random_values({2, 8, 10, 12}, -1, 1, 1).requires_grad_();
  const auto maps = with_shared_gradients({leaf});
  const auto loss = roi_align(maps, rois, {}, {}).square().sum();
  loss.backward({}, /*retain_graph=*/true);
  const auto once = leaf.grad().clone();
  loss.backward();
  EXPECT_TRUE(tensors_close(leaf.grad(), once * 2, 1e-6));
}

TEST(RoiAlign, ReturnsZeroGradientForUnusedMaps) {
  const std::vector maps = {random_values({1, 4, 8, 8}, -1, 1, 1).requires_grad_(),
                            random_values({1, 4, 4, 4}, -1, 1, 2).requires_grad_()};
  roi_align(maps, at::zeros({0, 5}), {}, {}).sum().backward();
  for (const auto& map : maps) EXPECT_TRUE(tensors_equal(map.grad(), at::zeros_like(map)));
}

TEST(RoiAlign, KeepsConstantsForAnyMapShape) {
  for (const auto& [height, width] : {std::pair{16, 16}, {1, 1}, {2500, 5}, {5, 2500}}) {
    const auto features = at::full({1, 65, height, width}, -1.5);
    const auto rois = at::tensor({0, 0, 0, 4 * width, 4 * height}, at::kFloat).view({1, 5});
    for (const std::int64_t ratio : {0, 2}) {
      const auto output = roi_align({features}, rois, {}, {.scale = 0.25, .sampling_ratio = ratio});
      EXPECT_TRUE(tensors_close(output, at::full({1, 65, 7, 7}, -1.5), 1e-4))
          << height << " x " << width;
    }
  }
}

TEST(RoiAlign, ConvertsHalfPrecisionMapsToFloat) {
  const auto rois = random_rois(9, 2, 10, 8);
  const auto maps = random_values({2, 8, 10, 12}, -1, 1, 1).to(at::kBFloat16).requires_grad_();
  const auto output = roi_align({maps}, rois, {}, {});
  EXPECT_TRUE(
      tensors_equal(output, roi_align({maps.to(at::kFloat)}, rois, {}, {}).to(at::kBFloat16)));
  output.sum().backward();
  EXPECT_EQ(maps.grad().scalar_type(), at::kBFloat16);
}

TEST(RoiAlign, ReturnsZerosForInvalidRegions) {
  const auto rois =
      at::cat({at::zeros({4, 1}), boxes_of({kNan, kNan, kNan, kNan, -kInfinite, 0, kInfinite, 4,  //
                                            50, 50, 60, 60, 4, 4, 2, 2})},
              1);
  const auto output = roi_align({at::full({1, 2, 8, 8}, 1.0)}, rois, {}, {.height = 2, .width = 2});
  EXPECT_TRUE(tensors_equal(output, at::zeros({4, 2, 2, 2})));
}

TEST(RoiAlign, RejectsImageIndexOutOfRange) {
  const auto features = at::zeros({2, 1, 4, 4});
  for (const double image : {-1.0, 2.0, 1e30, std::numeric_limits<double>::quiet_NaN()}) {
    const auto rois = at::tensor({image, 0.0, 0.0, 2.0, 2.0}, at::kFloat).view({1, 5});
    EXPECT_THROW(roi_align({features}, rois, {}, {}), std::invalid_argument) << image;
  }
}

TEST(RoiAlign, RejectsShapeMismatch) {
  const auto map = at::zeros({2, 3, 4, 4}), rois = at::zeros({2, 5});
  const auto refuses = [&](const std::vector<at::Tensor>& maps, const at::Tensor& regions,
                           const at::Tensor& levels) {
    EXPECT_THROW(roi_align(maps, regions, levels, {}), std::invalid_argument);
  };
  refuses({}, rois, {});
  refuses({map[0]}, rois, {});
  refuses({map, at::zeros({2, 4, 2, 2})}, rois, {});
  refuses({map, at::zeros({1, 3, 2, 2})}, rois, {});
  refuses({map, map.to(at::kDouble)}, rois, {});
  refuses({map.to(at::kLong)}, rois, {});
  refuses({map}, at::zeros({2, 4}), {});
  refuses({map}, rois, at::zeros({3}, at::kLong));
  refuses({map}, rois, at::zeros({2}));
  refuses({map}, rois, at::full({2}, 1, at::kLong));
  refuses({map}, rois, at::full({2}, -1, at::kLong));
}

}  // namespace
}  // namespace millrace::testing
