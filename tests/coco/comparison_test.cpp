// Whether results differ, and how sure that is.
#include "millrace/coco/analysis/comparison.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include "tests/coco/result_sets.h"

namespace millrace::coco {
namespace {

Comparison compared(const ResultSet& set, const std::vector<Detection>& a,
                    const std::vector<Detection>& b, std::size_t draws = 200) {
  const auto truth = set.data();
  const Matches of_a = match(*truth, Detections(a), {}, {}),
                of_b = match(*truth, Detections(b), {}, {});
  const Matches* alone[] = {&of_a};
  return compare(*truth, of_a, resample({*truth, alone, false}, truth->images.size(), draws), of_b,
                 /*class_agnostic=*/false);
}

std::vector<Detection> without_category(std::vector<Detection> found, std::int64_t id) {
  std::erase_if(found, [id](const Detection& one) { return one.category_id == id; });
  return found;
}

TEST(Comparison, EqualResultsDoNotDiffer) {
  const ResultSet set = random_results(1);
  const Comparison same = compared(set, set.found, set.found);
  EXPECT_EQ(same.difference.ap.value, 0);
  EXPECT_EQ(same.difference.ap.low, 0);
  EXPECT_EQ(same.difference.ap.high, 0);
  EXPECT_EQ(same.p, 1);
  EXPECT_FALSE(same.significant());
  for (const double p : same.category_p) EXPECT_EQ(p, 1);
}

TEST(Comparison, WithoutACategoryItsApIsLost) {
  const ResultSet set = random_results(2);
  const Evaluation plain = evaluate(*set.data(), Detections(set.found), {});
  const Comparison lost = compared(set, set.found, without_category(set.found, 20));
  ASSERT_GT(plain.category_ap[1], .05);
  EXPECT_NEAR(lost.difference.category_ap[1].value, plain.category_ap[1], kClose);
  EXPECT_NEAR(lost.difference.ap.value, plain.category_ap[1] / 4, kClose);
  EXPECT_LT(lost.category_p[1], .05);
  for (const std::size_t k : {0U, 2U, 3U}) {
    EXPECT_EQ(lost.difference.category_ap[k].value, 0);
    EXPECT_EQ(lost.category_p[k], 1);
  }
}

TEST(Comparison, TheOtherWayRoundOnlySignsChange) {
  const ResultSet set = random_results(3), other = random_results(3);
  auto worse = set.found;
  for (auto& one : worse) (*one.bbox)[0] += 4;
  const Comparison there = compared(set, set.found, worse), back = compared(set, worse, set.found);
  EXPECT_EQ(there.difference.ap.value, -back.difference.ap.value);
  EXPECT_NEAR(there.difference.ap.low, -back.difference.ap.high, kClose);
  EXPECT_NEAR(there.difference.ap50.high, -back.difference.ap50.low, kClose);
  EXPECT_EQ(there.p, back.p);
}

/// An object in each image.
ResultSet one_object_each(int images) {
  ResultSet set(images, 1);
  for (int i = 1; i <= images; ++i) {
    set.object(i, 1, {10, 10, 50, 50});
    set.detection(i, 1, {10, 10, 50, 50}, 1. / (i + 1));
  }
  return set;
}

// One side finds everything and the other nothing. The difference is 1 only where all coins fall
// alike.
TEST(Comparison, ManyImagesMakeADifferenceSure) {
  const ResultSet many = one_object_each(20);  // 2 of 2^20 tosses: none of the 200
  const Comparison sure = compared(many, many.found, {});
  EXPECT_NEAR(sure.difference.ap.value, 1, kClose);
  EXPECT_EQ(sure.p, 1 / 201.);
  EXPECT_TRUE(sure.significant());

  const ResultSet one = one_object_each(1);  // the side is all that a toss can change
  EXPECT_EQ(compared(one, one.found, {}).p, 1);
}

// Mixtures are scored as results of their own: half the images from either side, by hand and by
// weights.
TEST(Comparison, AMixtureOfResultsIsScoredAsOne) {
  const ResultSet set = random_results(4);
  auto other = random_results(4).found;
  for (auto& one : other) (*one.bbox)[1] += 3, one.score = 1 - one.score;
  std::vector<Detection> mixed;
  for (const auto& one : set.found)
    if (one.image_id % 2 == 0) mixed.push_back(one);
  for (const auto& one : other)
    if (one.image_id % 2 == 1) mixed.push_back(one);
  const auto truth = set.data();
  const Matches a = match(*truth, Detections(set.found), {}, {}),
                b = match(*truth, Detections(other), {}, {});
  const Matches* both[] = {&a, &b};
  const WeightedAp ap(*truth, both, false);
  std::vector<std::uint16_t> weights(60);
  for (std::size_t i = 0; i < 30; ++i)
    weights[i + (i % 2 == 1 ? 0 : 30)] = 1;  // position i has id i + 1
  std::vector<ApPair> categories(4);
  ap.measure(weights, categories);
  EXPECT_NEAR(mean(categories).ap, evaluate(*truth, Detections(mixed), {}).stats[0], kClose);
}

TEST(Comparison, TheNumberOfThreadsDoesNotMatter) {
  const ResultSet set = random_results(5);
  auto worse = set.found;
  for (auto& one : worse) (*one.bbox)[0] += 2;
  const auto with = [&](int threads) {
    return tbb::task_arena(threads).execute([&] { return compared(set, set.found, worse, 50); });
  };
  const Comparison one = with(1), many = with(2);
  EXPECT_EQ(sentence(one), sentence(many));
  EXPECT_EQ(one.difference.ap.low, many.difference.ap.low);
  EXPECT_EQ(one.category_p, many.category_p);
}

TEST(Comparison, TheSentenceSaysItAll) {
  Comparison made;
  made.a = {.4231, .6}, made.b = {.4210, .6};
  made.difference.ap = {.0021, -.0005, .0047};
  made.p = .13;
  EXPECT_EQ(
      sentence(made),
      "+0.21 AP (42.31 against 42.10), 95 % interval -0.05 .. +0.47, p = 0.130: within noise");
  made.p = .01;
  EXPECT_TRUE(sentence(made).ends_with("p = 0.010: better"));
  made.a.ap = -1;
  EXPECT_EQ(sentence(made), "no objects to find: nothing to compare");
}

}  // namespace
}  // namespace millrace::coco
