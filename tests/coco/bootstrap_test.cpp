// AP with weighted images, its confidence intervals, and significance tests between two results.
#include "millrace/coco/analysis/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "tests/coco/result_sets.h"

namespace millrace::coco {
namespace {

WeightedAp weighted(const Plan& plan, const Matches& matches) {
  const Matches* one[] = {&matches};
  return {plan, one};
}

std::vector<ApPair> measured(const ResultSet& set, const std::vector<std::uint16_t>& weights,
                             const EvaluateOptions& options = {}) {
  const auto truth = set.data();
  const Plan plan(*truth, options);
  const WeightedAp ap = weighted(plan, match(plan, Detections(set.found), {}));
  std::vector<ApPair> result(ap.categories());
  ap.measure(weights, result);
  return result;
}

Resamples drawn(const ResultSet& set, std::size_t draws) {
  const auto truth = set.data();
  const Plan plan(*truth, {});
  const Matches matches = match(plan, Detections(set.found), {});
  return resample(weighted(plan, matches), truth->images.size(), draws);
}

TEST(WeightedAp, MatchesEvaluatorWithUnitWeights) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const ResultSet set = random_results(1 + seed / 4);
    const EvaluateOptions options{.iou = seed % 2 ? IouType::mask : IouType::box,
                                  .class_agnostic = seed / 2 % 2 == 1};
    const Evaluation plain = evaluate(*set.data(), Detections(set.found), options);
    const auto categories = measured(set, std::vector<std::uint16_t>(30, 1), options);
    EXPECT_NEAR(mean(categories).ap, plain.stats[0], kClose);
    EXPECT_NEAR(mean(categories).ap50, plain.stats[1], kClose);
    for (std::size_t k = 0; k < categories.size(); ++k)
      EXPECT_NEAR(categories[k].ap, plain.category_ap[k], kClose);
  }
}

/// Returns the set with image i repeated weights[i] times.
ResultSet copied(const ResultSet& set, const std::vector<std::uint16_t>& weights) {
  ResultSet copies(0, 0);
  copies.truth.categories = set.truth.categories;
  copies.truth.names = set.truth.names;
  std::int64_t image = 0, id = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (int copy = 0; copy < weights[i]; ++copy) {
      copies.truth.add_image(++image, "copy.jpg", 300, 300);
      for (Annotation one : set.truth.annotations) {
        if (one.image_id != set.truth.images[i].id) continue;
        one.id = ++id, one.image_id = image;
        copies.truth.add(one);
      }
      for (Detection one : set.found) {
        if (one.image_id != set.truth.images[i].id) continue;
        one.image_id = image;
        copies.found.push_back(one);
      }
    }
  return copies;
}

TEST(WeightedAp, MatchesEvaluatorWithRepeatedImages) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const ResultSet set = random_results(seed, 12);
    Rng rng{seed, 99};
    std::vector<std::uint16_t> weights(12);
    for (auto& weight : weights) weight = static_cast<std::uint16_t>(rng.below(4));
    const ResultSet copies = copied(set, weights);
    const Evaluation plain = evaluate(*copies.data(), Detections(copies.found), {});
    const ApPair ap = mean(measured(set, weights));
    EXPECT_NEAR(ap.ap, plain.stats[0], kClose);
    EXPECT_NEAR(ap.ap50, plain.stats[1], kClose);
  }
  const std::vector<std::uint16_t> none(30, 0);
  EXPECT_EQ(mean(measured(random_results(1), none)).ap, -1) << "no objects";
}

TEST(Bootstrap, ReturnsEmptyIntervalForEqualImages) {
  const ResultSet set = copied(random_results(3, 1), {20});
  const Spread sure = spread(drawn(set, 50));
  ASSERT_GT(sure.ap.value, 0);
  EXPECT_NEAR(sure.ap.low, sure.ap.value, kClose);
  EXPECT_NEAR(sure.ap.high, sure.ap.value, kClose);
}

// The object is found in one of two images: precision is 1 up to recall .5, so AP = 51 / 101. A
// bootstrap sample contains the first image twice with probability 1/4 (AP 1) and the second image
// twice with probability 1/4 (AP 0), so the percentiles are 0 and 1. The basic interval is from
// 2 x 51/101 - 1 = 1/101 to 102/101, clipped to 1.
TEST(Bootstrap, UsesBasicInterval) {
  ResultSet set(2, 1);
  set.object(1, 1, {10, 10, 50, 50});
  set.object(2, 1, {10, 10, 50, 50});
  set.detection(1, 1, {10, 10, 50, 50}, .9);
  const Spread result = spread(drawn(set, 200));
  EXPECT_NEAR(result.ap.value, 51 / 101., kClose);
  EXPECT_NEAR(result.ap.low, 1 / 101., kClose);
  EXPECT_EQ(result.ap.high, 1);
}

TEST(Bootstrap, ReturnsNoIntervalWithoutObjects) {
  ResultSet set(2, 2);
  set.object(1, 1, {10, 10, 50, 50});
  const Spread result = spread(drawn(set, 20));
  EXPECT_EQ(result.ap.value, 0);
  EXPECT_TRUE(std::isnan(result.category_ap[1].low));
}

Comparison compared(const ResultSet& set, const std::vector<Detection>& a,
                    const std::vector<Detection>& b) {
  const auto truth = set.data();
  const Plan plan(*truth, {});
  const Matches of_a = match(plan, Detections(a), {}), of_b = match(plan, Detections(b), {});
  return compare(plan, of_a, resample(weighted(plan, of_a), truth->images.size(), 200), of_b);
}

TEST(Comparison, ReturnsZeroForEqualResults) {
  const ResultSet set = random_results(1);
  const Comparison same = compared(set, set.found, set.found);
  EXPECT_EQ(same.difference.ap.value, 0);
  EXPECT_EQ(same.difference.ap.low, 0);
  EXPECT_EQ(same.difference.ap.high, 0);
  EXPECT_EQ(same.p, 1);
  EXPECT_FALSE(same.significant());
  for (const double p : same.category_p) EXPECT_EQ(p, 1);
}

TEST(Comparison, AttributesLossToMissingCategory) {
  const ResultSet set = random_results(2);
  const Evaluation plain = evaluate(*set.data(), Detections(set.found), {});
  auto without = set.found;
  std::erase_if(without, [](const Detection& one) { return one.category_id == 20; });
  const Comparison lost = compared(set, set.found, without);
  ASSERT_GT(plain.category_ap[1], .05);
  EXPECT_NEAR(lost.difference.category_ap[1].value, plain.category_ap[1], kClose);
  EXPECT_NEAR(lost.difference.ap.value, plain.category_ap[1] / 4, kClose);
  EXPECT_LT(lost.category_p[1], .05);
  for (const std::size_t k : {0U, 2U, 3U}) {
    EXPECT_EQ(lost.difference.category_ap[k].value, 0);
    EXPECT_EQ(lost.category_p[k], 1);
  }
}

TEST(Comparison, FlipsSignIfResultsAreSwapped) {
  const ResultSet set = random_results(3);
  auto worse = set.found;
  for (auto& one : worse) (*one.bbox)[0] += 4;
  const Comparison there = compared(set, set.found, worse), back = compared(set, worse, set.found);
  EXPECT_EQ(there.difference.ap.value, -back.difference.ap.value);
  EXPECT_NEAR(there.difference.ap.low, -back.difference.ap.high, kClose);
  EXPECT_NEAR(there.difference.ap50.high, -back.difference.ap50.low, kClose);
  EXPECT_EQ(there.p, back.p);
}

/// Returns a result set of images with one object and one detection each.
ResultSet one_object_each(int images) {
  ResultSet set(images, 1);
  for (int i = 1; i <= images; ++i) {
    set.object(i, 1, {10, 10, 50, 50});
    set.detection(i, 1, {10, 10, 50, 50}, 1. / (i + 1));
  }
  return set;
}

// One result detects every object, the other detects none. The test swaps the two results of each
// image by a coin toss, so the difference is 1 or -1 only if all tosses are equal.
TEST(Comparison, IsSignificantForManyImages) {
  const ResultSet many = one_object_each(20);  // probability 2 in 2^20: in none of the 200 draws
  const Comparison sure = compared(many, many.found, {});
  EXPECT_NEAR(sure.difference.ap.value, 1, kClose);
  EXPECT_EQ(sure.p, 1 / 201.);
  EXPECT_TRUE(sure.significant());

  const ResultSet one = one_object_each(1);  // a toss only changes the sign
  EXPECT_EQ(compared(one, one.found, {}).p, 1);
}

// Takes half of the images from each result, once by hand and once by weights.
TEST(Comparison, MatchesEvaluatorForMixedResults) {
  const ResultSet set = random_results(4);
  auto other = random_results(4).found;
  for (auto& one : other) (*one.bbox)[1] += 3, one.score = 1 - one.score;
  std::vector<Detection> mixed;
  std::ranges::copy_if(set.found, std::back_inserter(mixed),
                       [](const Detection& one) { return one.image_id % 2 == 0; });
  std::ranges::copy_if(other, std::back_inserter(mixed),
                       [](const Detection& one) { return one.image_id % 2 == 1; });
  const auto truth = set.data();
  const Plan plan(*truth, {});
  const Matches a = match(plan, Detections(set.found), {}), b = match(plan, Detections(other), {});
  const Matches* both[] = {&a, &b};
  const WeightedAp ap(plan, both);
  std::vector<std::uint16_t> weights(60);
  for (std::size_t i = 0; i < 30; ++i)
    weights[i + (i % 2 == 1 ? 0 : 30)] = 1;  // the image at index i has id i + 1
  std::vector<ApPair> categories(4);
  ap.measure(weights, categories);
  EXPECT_NEAR(mean(categories).ap, evaluate(*truth, Detections(mixed), {}).stats[0], kClose);
}

TEST(Comparison, PrintsNumbersAndVerdict) {
  Comparison made;
  made.a = {.4231, .6}, made.b = {.4210, .6};
  made.difference.ap = {.0021, -.0005, .0047};
  made.p = .13;
  for (const auto* part : {"+0.21 AP", "42.31", "42.10", "-0.05 .. +0.47", "p = 0.130", "noise"})
    EXPECT_THAT(sentence(made), ::testing::HasSubstr(part));
  made.p = .01;
  EXPECT_THAT(sentence(made), ::testing::HasSubstr("better"));
  made.a.ap = -1;
  EXPECT_THAT(sentence(made), ::testing::HasSubstr("no objects"));
}

}  // namespace
}  // namespace millrace::coco
