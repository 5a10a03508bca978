#include "millrace/plugins/yolox/assignment.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace millrace::yolox {
namespace {

using millrace::testing::tensors_equal;

constexpr std::int64_t kSide = 64;  // in pixels: 8 x 8, 4 x 4 and 2 x 2 cells
constexpr std::int64_t kCells = 64 + 16 + 4;

/// Returns outputs in which every cell predicts `box` (centre, width, height) and equal class
/// scores.
Outputs all_say(const std::vector<double>& box, std::int64_t classes = 2) {
  return {at::tensor(box, at::kFloat).expand({1, kCells, 4}).contiguous(), at::zeros({1, kCells}),
          at::zeros({1, kCells, classes})};
}

Assignment assigned(const Outputs& outputs, const at::Tensor& boxes, const at::Tensor& labels) {
  return assign(outputs, Grid::of(kSide, kSide, at::kCPU), boxes, labels, {boxes.size(0)});
}

const auto kLabel = [](std::initializer_list<std::int64_t> labels) {
  return at::tensor(at::ArrayRef<std::int64_t>(labels.begin(), labels.size()), at::kLong);
};

TEST(SimOta, PrefersFirstOfEqualCells) {
  // All cells have IoU 1, so ten are assigned. 4 x 4 cells of stride 8 are inside the box and near
  // its centre.
  const std::vector<double> box{32, 32, 64, 64};
  const auto result = assigned(all_say(box), at::tensor(box, at::kFloat).view({1, 4}), kLabel({1}));
  EXPECT_TRUE(
      tensors_equal(result.rows, at::tensor({18, 19, 20, 21, 26, 27, 28, 29, 34, 35}, at::kLong)));
  EXPECT_TRUE(tensors_equal(result.objects, at::zeros({10}, at::kLong)));
  EXPECT_TRUE(tensors_equal(result.ious, at::full({10}, 1.0, at::kFloat)));
}

TEST(SimOta, AssignsOneCellIfNothingOverlaps) {
  const auto result = assigned(all_say({8, 8, 4, 4}),
                               at::tensor({44, 44, 8, 8}, at::kFloat).view({1, 4}), kLabel({0}));
  ASSERT_EQ(result.rows.size(0), 1);
  EXPECT_EQ(result.rows.item<std::int64_t>(), 45);  // the only cell of stride 8 inside the box
  EXPECT_EQ(result.ious.item<float>(), 0);
}

TEST(SimOta, AssignsSharedCellsToCheaperObject) {
  // Two objects with the same box and different classes.
  auto outputs = all_say({32, 32, 64, 64});
  outputs.classes.select(2, 1).fill_(4);
  const auto box = at::tensor({32, 32, 64, 64}, at::kFloat).expand({2, 4}).contiguous();
  const auto result = assigned(outputs, box, kLabel({0, 1}));
  EXPECT_EQ(result.rows.size(0), 10);
  EXPECT_TRUE(tensors_equal(result.objects, at::full({10}, 1, at::kLong)));
}

TEST(SimOta, DoesNotDependOnThreadCount) {
  const auto grid = Grid::of(kSide, kSide, at::kCPU);
  at::manual_seed(3);
  const Outputs outputs{at::rand({5, kCells, 4}) * 40 + 5, at::randn({5, kCells}),
                        at::randn({5, kCells, 3})};
  const auto boxes = at::rand({7, 4}) * 30 + 10;
  const auto labels = kLabel({0, 1, 2, 0, 1, 2, 0});
  const std::vector<std::int64_t> counts{2, 0, 1, 4, 0};
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = assign(outputs, grid, boxes, labels, counts);
  at::set_num_threads(8);
  const auto many = assign(outputs, grid, boxes, labels, counts);
  at::set_num_threads(threads);
  EXPECT_TRUE(tensors_equal(alone.rows, many.rows));
  EXPECT_TRUE(tensors_equal(alone.objects, many.objects));
  EXPECT_TRUE(tensors_equal(alone.ious, many.ious));
  for (std::int64_t f = 0; f < alone.rows.size(0); ++f) {
    const auto image = alone.rows[f].item<std::int64_t>() / kCells;
    const auto object = alone.objects[f].item<std::int64_t>();
    EXPECT_EQ(image, object < 2 ? 0 : object < 3 ? 2 : 3);
  }
}

TEST(SimOta, AssignsNoCellWithoutObjects) {
  EXPECT_EQ(assigned(all_say({32, 32, 9, 9}), at::zeros({0, 4}), kLabel({})).rows.size(0), 0);
}

}  // namespace
}  // namespace millrace::yolox
