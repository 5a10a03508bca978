// Every formula of ours that is differentiated, in double.
#include "tests/models/gradients.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "millrace/models/layers/losses.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/roi_align.h"
#include "tests/models/random_boxes.h"

namespace millrace {
namespace {

using testing::expect_gradient;
using testing::random_boxes;
using testing::random_values;

at::Tensor doubles(at::IntArrayRef shape, double low, double high, std::uint64_t seed) {
  return random_values(shape, low, high, seed).to(at::kDouble);
}

TEST(Gradients, OfRoiAlign) {
  const auto rois =
      at::cat({random_values({6, 1}, 0, 2, 3).floor(), random_boxes(6, 20, 25, 4)}, 1);
  const auto levels = at::tensor({0, 1, 0, 1, 1, 0}, at::kLong);
  const auto other = doubles({2, 3, 4, 3}, -1, 1, 5);
  const auto weights = doubles({6, 3, 3, 2}, -1, 1, 6);
  for (const bool aligned : {false, true})
    for (const std::int64_t ratio : {0, 2}) {
      const RoiAlignOptions options{3, 2, 0.25, ratio, aligned};
      expect_gradient(
          [&](const at::Tensor& map) {
            return (roi_align({map, other}, rois, levels, options) * weights).sum();
          },
          doubles({2, 3, 8, 6}, -1, 1, 7));
      const auto finer = doubles({2, 3, 8, 6}, -1, 1, 8);
      expect_gradient(
          [&](const at::Tensor& map) {
            return (roi_align({finer, map}, rois, levels, options) * weights).sum();
          },
          other);
    }
}

TEST(Gradients, OfDecodedBoxes) {
  const auto proposals = random_boxes(5, 100, 50, 1).to(at::kDouble);
  const auto weights = doubles({5, 8}, -1, 1, 3);
  for (const double offset : {0.0, 1.0}) {
    const BoxCoder coder{{10, 10, 5, 5}, 0.2, offset};  // cut where dw or dh is above 1
    expect_gradient(
        [&](const at::Tensor& deltas) { return (coder.decode(proposals, deltas) * weights).sum(); },
        doubles({5, 8}, -2, 2, 4));
  }
}

TEST(Gradients, OfSmoothL1) {
  const auto target = doubles({40}, -1, 1, 1);
  for (const double beta : {0.0, 1.0 / 9, 1.0})
    expect_gradient([&](const at::Tensor& x) { return smooth_l1_sum(x, target, beta); },
                    doubles({40}, -1, 1, 2));
}

TEST(Gradients, OfBinaryCrossEntropy) {
  const auto target = doubles({40}, 0, 1, 1);
  expect_gradient([&](const at::Tensor& x) { return binary_cross_entropy_sum(x, target); },
                  doubles({40}, -6, 6, 2));
}

}  // namespace
}  // namespace millrace
