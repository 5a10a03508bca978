#include "millrace/models/ops/sampling.h"

#include <ATen/ops/where.h>

#include <algorithm>
#include <stdexcept>

#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

/// Returns 1000 labels: 40 foreground, 60 ignored, the rest background.
at::Tensor some_labels() {
  auto label = at::zeros({1000}, at::kChar);
  label.slice(0, 100, 140).fill_(1);
  label.slice(0, 500, 560).fill_(-1);
  return label;
}

struct Sample {
  at::Tensor positive, negative;
};

/// Samples from the labels [P] of one image.
Sample sample(const at::Tensor& label, std::int64_t count, double fraction, Rng rng) {
  const auto samples = sample_candidates({make_sampling_task(label.unsqueeze(0), count, fraction,
                                                             [&](std::size_t) { return rng; })})[0];
  const auto foreground = samples.counts[0].foreground;
  EXPECT_EQ(samples.rows.size(0), samples.counts[0].all());
  return {samples.rows.slice(0, 0, foreground), samples.rows.slice(0, foreground)};
}

/// Samples by the definition: shuffles the list of indices (Fisher-Yates) and sorts the first
/// `count`.
at::Tensor by_definition(const at::Tensor& listed, std::int64_t count, Rng& rng) {
  std::vector<std::int64_t> from(listed.const_data_ptr<std::int64_t>(),
                                 listed.const_data_ptr<std::int64_t>() + listed.numel());
  if (count < std::ssize(from))
    for (std::int64_t place = 0; place < count; ++place)
      std::iter_swap(from.begin() + place,
                     from.begin() + place +
                         static_cast<std::ptrdiff_t>(
                             rng.below(static_cast<std::uint64_t>(std::ssize(from) - place))));
  from.resize(static_cast<std::size_t>(count));
  std::ranges::sort(from);
  return longs(from);
}

void expect_distinct_ascending(const at::Tensor& indices) {
  EXPECT_GT((indices.slice(0, 1) - indices.slice(0, 0, -1)).min().item<std::int64_t>(), 0);
}

TEST(Sample, DrawsRequestedCountWithoutReplacement) {
  const auto label = some_labels();
  for (const auto& [fraction, positives] : {std::pair{0.25, 32}, {0.5, 40}}) {
    const auto [positive, negative] = sample(label, 128, fraction, Rng{1});
    EXPECT_EQ(positive.numel(), positives);
    EXPECT_EQ(negative.numel(), 128 - positives);
    EXPECT_TRUE(label.index_select(0, positive).eq(1).all().item<bool>());
    EXPECT_TRUE(label.index_select(0, negative).eq(0).all().item<bool>());
    expect_distinct_ascending(positive);
    expect_distinct_ascending(negative);
  }
}

TEST(Sample, MatchesShuffleOfEachLabel) {
  for (const std::int64_t size : {1, 1023, 1024, 1025, 5000}) {
    auto label = random_values({size}, -1, 2, 5).floor().to(at::kChar);
    for (const std::int64_t count : {1, 64, 512, 10'000}) {
      Rng rng{static_cast<std::uint64_t>(count)};
      const auto [positive, negative] = sample(label, count, 0.5, rng);
      EXPECT_TRUE(tensors_equal(
          positive,
          by_definition((label == 1).nonzero().squeeze(1).contiguous(), positive.numel(), rng)));
      EXPECT_TRUE(tensors_equal(
          negative,
          by_definition((label == 0).nonzero().squeeze(1).contiguous(), negative.numel(), rng)));
    }
  }
}

TEST(Sample, DependsOnlyOnRandomStream) {
  const auto label = some_labels();
  const auto first = sample(label, 64, 0.25, Rng{7}), second = sample(label, 64, 0.25, Rng{7});
  EXPECT_TRUE(tensors_equal(first.positive, second.positive));
  EXPECT_TRUE(tensors_equal(first.negative, second.negative));
  EXPECT_FALSE(tensors_equal(first.negative, sample(label, 64, 0.25, Rng{8}).negative));
}

TEST(Sample, IsUniform) {
  const auto label = at::full({10}, 1, at::kChar);
  auto drawn = at::zeros({10}, at::kLong);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const auto positive = sample(label, 3, 1, Rng{3, i}).positive;
    drawn.index_add_(0, positive, at::full({3}, 1, at::kLong));
  }
  EXPECT_GT(drawn.min().item<std::int64_t>(), 800);  // 900 expected, standard deviation 25
  EXPECT_LT(drawn.max().item<std::int64_t>(), 1000);
}

TEST(Sample, DrawsAllIfFewerThanRequested) {
  const auto [positive, negative] = sample(at::tensor({1, 0, -1, 0}, at::kChar), 512, 0.25, Rng{1});
  EXPECT_TRUE(tensors_equal(positive, at::tensor({0}, at::kLong)));
  EXPECT_TRUE(tensors_equal(negative, at::tensor({1, 3}, at::kLong)));
}

TEST(Sample, MatchesSamplingImageByImage) {
  const auto labels = random_values({3, 2500}, -1, 2, 9).floor().to(at::kChar);
  labels[1].fill_(-1);  // an image without candidates
  const auto rng = [](std::size_t image) { return Rng{5, image}; };
  const auto samples = sample_candidates({make_sampling_task(labels, 100, 0.25, rng),
                                          make_sampling_task(labels.slice(1, 0, 30), 50, 0.5, rng),
                                          make_sampling_task(labels.slice(1, 0, 0), 50, 0.5, rng)});
  ASSERT_EQ(samples.size(), 3U);
  for (const auto& [task, width, count, fraction] :
       {std::tuple{0, 2500, 100, 0.25}, {1, 30, 50, 0.5}, {2, 0, 50, 0.5}}) {
    const auto& all = samples[static_cast<std::size_t>(task)];
    std::int64_t first = 0, foreground = 0;
    for (std::int64_t image = 0; image < 3; ++image) {
      const auto own = all.counts[static_cast<std::size_t>(image)];
      const auto [positive, negative] = sample(labels[image].slice(0, 0, width), count, fraction,
                                               rng(static_cast<std::size_t>(image)));
      EXPECT_EQ(own.foreground, positive.numel());
      EXPECT_TRUE(tensors_equal(all.rows.slice(0, first, first + own.all()),
                                at::cat({positive, negative}) + image * width));
      EXPECT_TRUE(all.image.slice(0, first, first + own.all()).eq(image).all().item<bool>());
      for (std::int64_t i = 0; i < own.all(); ++i)
        EXPECT_EQ(all.slots[first + i].item<std::int64_t>(), image * all.longest() + i);
      for (std::int64_t i = 0; i < own.foreground; ++i)
        EXPECT_EQ(all.foreground[foreground++].item<std::int64_t>(), first + i);
      first += own.all();
    }
    EXPECT_EQ(all.rows.size(0), first);
    EXPECT_EQ(all.foreground.size(0), foreground);
  }
}

TEST(Sample, RejectsShapeMismatch) {
  const auto rng = [](std::size_t) { return Rng{1}; };
  EXPECT_THROW(sample_candidates({make_sampling_task(some_labels(), 1, 1, rng)}),
               std::invalid_argument);
  EXPECT_THROW(sample_candidates({make_sampling_task(at::zeros({1, 3}), 1, 1, rng)}),
               std::invalid_argument);
}

}  // namespace
}  // namespace millrace::testing
