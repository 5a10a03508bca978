#include "millrace/plugins/rtdetr/deformable_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/models/operators.h"

namespace millrace::rtdetr {
namespace {

using millrace::testing::random_values;
using millrace::testing::tensors_close;
using millrace::testing::tensors_equal;

const MapSizes kSizes = {{6, 7}, {3, 4}, {1, 2}};
constexpr std::int64_t kImages = 2, kPlaces = 42 + 12 + 2, kHeads = 3, kChannels = 11, kQueries = 5,
                       kPoints = 4;

struct Inputs {
  at::Tensor values, locations, weights;

  at::Tensor read() const { return deformable_attention(values, kSizes, locations, weights); }
};

/// Returns inputs with some sampling locations outside the map.
Inputs inputs(at::ScalarType type) {
  const auto made = [&](at::IntArrayRef shape, double low, double high, std::uint64_t seed) {
    return random_values(shape, low, high, seed).to(type).requires_grad_();
  };
  return {made({kImages, kPlaces, kHeads, kChannels}, -1, 1, 1),
          made({kImages, kQueries, kHeads, 3, kPoints, 2}, -0.3, 1.3, 2),
          made({kImages, kQueries, kHeads, 3, kPoints}, 0, 1, 3)};
}

/// Computes deformable attention with libtorch's grid_sample, map by map.
at::Tensor reference(const Inputs& in) {
  std::vector<at::Tensor> read;
  std::int64_t first = 0;
  for (std::size_t l = 0; l < kSizes.size(); ++l) {
    const auto [height, width] = kSizes[l];
    const auto map = in.values.narrow(1, first, height * width)
                         .permute({0, 2, 3, 1})
                         .reshape({kImages * kHeads, kChannels, height, width});
    const auto grid = (2 * in.locations.select(3, static_cast<std::int64_t>(l)) - 1)
                          .transpose(1, 2)
                          .flatten(0, 1);
    read.push_back(at::grid_sampler_2d(map, grid, /*bilinear*/ 0, /*zeros*/ 0,
                                       /*align_corners=*/false));
    first += height * width;
  }
  const auto weights = in.weights.transpose(1, 2).reshape({kImages * kHeads, 1, kQueries, -1});
  return (at::stack(read, -2).flatten(-2) * weights)
      .sum(-1)
      .view({kImages, kHeads * kChannels, kQueries})
      .transpose(1, 2);
}

TEST(DeformableAttention, MatchesGridSample) {
  for (const auto& [type, tolerance] : {std::pair{at::kFloat, 1e-5}, {at::kDouble, 1e-13}}) {
    const auto ours = inputs(type), theirs = inputs(type);
    const auto weights = random_values({kImages, kQueries, kHeads * kChannels}, -1, 1, 4).to(type);
    const auto output = ours.read(), expected = reference(theirs);
    EXPECT_TRUE(tensors_close(output, expected, tolerance));
    output.backward(weights);
    expected.backward(weights);
    EXPECT_TRUE(tensors_close(ours.values.grad(), theirs.values.grad(), tolerance));
    EXPECT_TRUE(tensors_close(ours.locations.grad(), theirs.locations.grad(), 10 * tolerance));
    EXPECT_TRUE(tensors_close(ours.weights.grad(), theirs.weights.grad(), tolerance));
  }
}

TEST(DeformableAttention, MatchesFiniteDifferences) {
  constexpr double kStep = 1e-6;
  const auto in = inputs(at::kDouble);
  const auto weights =
      random_values({kImages, kQueries, kHeads * kChannels}, -1, 1, 4).to(at::kDouble);
  in.read().backward(weights);
  const at::NoGradGuard no_grad;
  for (const auto& input : {in.values, in.locations, in.weights}) {
    const auto gradient = input.grad().flatten();
    for (std::int64_t i = 0; i < input.numel(); i += 1 + input.numel() / 97) {
      const auto place = input.view(-1)[i];
      const auto at_distance = [&](double distance) {
        place.add_(distance);
        const auto sum = (in.read() * weights).sum().item<double>();
        place.sub_(distance);
        return sum;
      };
      EXPECT_NEAR((at_distance(kStep) - at_distance(-kStep)) / (2 * kStep),
                  gradient[i].item<double>(), 1e-6)
          << i;
    }
  }
}

TEST(DeformableAttention, DoesNotDependOnThreadCount) {
  const auto weights = random_values({kImages, kQueries, kHeads * kChannels}, -1, 1, 4);
  millrace::testing::expect_same_on_any_threads([&] {
    const auto in = inputs(at::kFloat);
    const auto output = in.read();
    output.backward(weights);
    return std::vector{output.detach(), in.values.grad(), in.locations.grad(), in.weights.grad()};
  });
}

TEST(DeformableAttention, ReturnsZeroAtNonFiniteLocations) {
  auto in = inputs(at::kFloat);
  for (const float bad : {millrace::testing::kNan, millrace::testing::kInfinite, 1e30F, -1e30F}) {
    in.locations = at::zeros(in.locations.sizes(), at::kFloat) + bad;
    const auto output = in.read();
    EXPECT_TRUE(tensors_equal(output.detach(), at::zeros(output.sizes(), at::kFloat))) << bad;
  }
}

TEST(DeformableAttention, RejectsMismatchedShapes) {
  const auto in = inputs(at::kFloat);
  EXPECT_THROW(deformable_attention(in.values, {{6, 7}}, in.locations, in.weights),
               std::invalid_argument);
  EXPECT_THROW(deformable_attention(in.values.narrow(2, 0, 1), kSizes, in.locations, in.weights),
               std::invalid_argument);
  EXPECT_THROW(deformable_attention(in.values, kSizes, in.locations, in.weights[0]),
               std::invalid_argument);
}

}  // namespace
}  // namespace millrace::rtdetr
