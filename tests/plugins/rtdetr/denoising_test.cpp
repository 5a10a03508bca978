#include "millrace/plugins/rtdetr/denoising.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sigmoid.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/plugins/rtdetr/tiny.h"
#include "tests/support/tensors.h"

namespace millrace::rtdetr::testing {
namespace {

using millrace::testing::tensors_close;
using millrace::testing::tensors_equal;

TEST(Denoising, MakesAtLeastOneGroup) {
  EXPECT_EQ(DenoisingShape(30, {.num_queries = 100}).groups, 3);
  EXPECT_EQ(DenoisingShape(300, {.num_queries = 100}).groups, 1);
  EXPECT_EQ(DenoisingShape(300, {.num_queries = 100}).queries(), 600);
  EXPECT_EQ(DenoisingShape(0, {.num_queries = 100}).queries(), 0);
  EXPECT_EQ(DenoisingShape(30, {.num_queries = 0}).queries(), 0);
}

TEST(Denoising, SamplesObjectsAboveLimit) {
  const Target all{at::arange(50, at::kLong), at::rand({50, 4})};
  const auto few = choose_denoised({all}, 50, {.step = 1});
  EXPECT_TRUE(tensors_equal(few[0].labels, all.labels));
  EXPECT_TRUE(tensors_equal(few[0].boxes, all.boxes));

  std::set<std::int64_t> ever;  // objects chosen so far; in the end, all objects
  for (std::int64_t step = 0; step < 40; ++step) {
    const auto some = choose_denoised({all}, 20, {.step = step})[0];
    ASSERT_EQ(some.labels.size(0), 20);
    EXPECT_TRUE(tensors_equal(some.boxes, all.boxes.index_select(0, some.labels)));
    const auto* const label = some.labels.const_data_ptr<std::int64_t>();
    EXPECT_EQ(std::set(label, label + 20).size(), 20U);  // without repetition
    ever.insert(label, label + 20);
  }
  EXPECT_EQ(ever.size(), 50U);
}

TEST(Denoising, SamplesEachImageIndependently) {
  const Target one{at::arange(50, at::kLong), at::rand({50, 4})};
  const auto both = choose_denoised({tiny_targets()[0], one}, 20, {.seed = 5, .step = 7});
  const auto alone = choose_denoised({one}, 20, {.seed = 5, .step = 7, .first_image = 1});
  EXPECT_TRUE(tensors_equal(both[1].labels, alone[0].labels));
}

TEST(Denoising, DrawsNoiseForEachImageIndependently) {
  const auto targets = tiny_targets();
  const DenoisingOptions options{.num_queries = 8};
  const DenoisingShape shape(3, options);
  const auto both = draw_noise(targets, shape, options, 80, {.seed = 5, .step = 7});
  const auto alone =
      draw_noise({targets[1]}, shape, options, 80, {.seed = 5, .step = 7, .first_image = 1});
  EXPECT_TRUE(tensors_equal(both.corner_shifts[1], alone.corner_shifts[0]));
  EXPECT_TRUE(tensors_equal(both.labels[1], alone.labels[0]));
  EXPECT_TRUE(tensors_equal(both.relabels[1], alone.relabels[0]));
  const auto later = draw_noise(targets, shape, options, 80, {.seed = 5, .step = 8});
  EXPECT_FALSE(both.corner_shifts.equal(later.corner_shifts));
}

TEST(Denoising, ShiftsNegativesFurther) {
  const auto targets = tiny_targets();
  const DenoisingOptions options{.num_queries = 60};
  const DenoisingShape shape(3, options);
  const auto corner_shifts = draw_noise(targets, shape, options, 80, {}).corner_shifts[0].abs();
  for (std::int64_t block = 0; block < 2 * shape.groups; ++block) {
    const auto own = corner_shifts.narrow(0, block * 3, 3);
    EXPECT_GE(own.min().item<float>(), static_cast<float>(block % 2));
    EXPECT_LT(own.max().item<float>(), static_cast<float>(1 + block % 2));
  }
}

TEST(Denoising, ReturnsObjectsIfNoiseIsZero) {
  const auto targets = tiny_targets();
  const DenoisingOptions options{.num_queries = 8, .label_noise = 0, .box_noise = 0};
  const DenoisingShape shape(3, options);
  const auto queries = denoising_queries(targets, shape, options, kClasses,
                                         draw_noise(targets, shape, options, kClasses, {}));
  for (std::int64_t block = 0; block < 2 * shape.groups; ++block) {
    EXPECT_TRUE(tensors_equal(queries.labels[0].narrow(0, 3 * block, 3), targets[0].labels));
    EXPECT_TRUE(tensors_close(at::sigmoid(queries.box_logits[0].narrow(0, 3 * block, 3)),
                              targets[0].boxes, 1e-5));
    // The second image has one object, so the other two places are empty.
    EXPECT_TRUE(tensors_equal(queries.labels[1].narrow(0, 3 * block, 3), at::tensor({1L, 3L, 3L})));
  }
}

TEST(Denoising, MasksAttentionBetweenGroups) {
  const DenoisingShape shape(2, {.num_queries = 4});  // two groups of four
  const auto mask = denoising_mask(shape, 3);
  ASSERT_EQ(mask.size(0), 11);
  for (std::int64_t from = 0; from < 11; ++from)
    for (std::int64_t to = 0; to < 11; ++to) {
      const bool sees = to >= 8 || (from < 8 && from / 4 == to / 4);
      EXPECT_EQ(mask[from][to].item<float>() == 0, sees) << from << " " << to;
    }
}

}  // namespace
}  // namespace millrace::rtdetr::testing
