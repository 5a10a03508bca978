// Confusion matrix at a score threshold, and operating points.
#include "millrace/coco/analysis/confusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coco/result_sets.h"

namespace millrace::coco {
namespace {

using ::testing::ElementsAre;

constexpr Rectangle kNear{20, 0, 100, 100};

ConfusionMatrix confusion(const ResultSet& set, double score, const EvaluateOptions& options = {}) {
  const auto truth = set.data();
  const Detections found(set.found);
  const Plan plan(*truth, options);
  const Matches matches = match(plan, found, {});
  Confusion result(matches, score);
  for_each_image(plan, found, matches, [&](const ImagePairs& pairs) { result.add(pairs); });
  return result.matrix();
}

OperatingPoints operating_points(const ResultSet& set) {
  const auto truth = set.data();
  return operating_points(match(Plan(*truth, {}), Detections(set.found), {}));
}

TEST(Confusion, CountsTruthInRowsDetectionsInColumns) {
  ResultSet set(2, 2);
  set.object(1, 1, kHere);
  set.detection(1, 2, kHere, .9);  // c1 detected as c2
  set.object(1, 2, kElsewhere);    // c2 missed
  set.object(2, 2, kHere);
  set.detection(2, 2, kNear, .5);                             // correct
  set.detection(2, 1, kElsewhere, .8);                        // false positive of c1
  EXPECT_THAT(confusion(set, 0).counts, ElementsAre(0, 1, 0,  //
                                                    0, 1, 1,  //
                                                    1, 0, 0));
}

TEST(Confusion, MatchesGreedily) {
  const auto counts = [](const std::vector<Object>& objects, const std::vector<Found>& found,
                         double score = 0) {
    return confusion(scene(objects, found), score).counts;
  };
  const std::vector<Object> one = {{1, kHere}};
  EXPECT_THAT(counts(one, {{1, kHere, .4}}, .4), ElementsAre(1, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(counts(one, {{1, kHere, .4}}, .5), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 0));
  // The higher score is matched first.
  EXPECT_THAT(counts(one, {{1, kHere, .5}, {2, kNear, .6}}),
              ElementsAre(0, 1, 0, 0, 0, 0, 1, 0, 0));
  // If two objects have equal IoU, the object of the detection's class is matched.
  for (const int first : {1, 2})
    EXPECT_THAT(counts({{first, kHere}, {3 - first, kHere}}, {{1, kHere, .9}}),
                ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0));
  // Crowds absorb detections of their own class.
  constexpr Rectangle kInside{10, 10, 20, 20};
  EXPECT_THAT(counts({{1, kHere, /*crowd=*/true}}, {{1, kInside, .9}, {2, kInside, .8}}),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 0));
}

TEST(Confusion, RowsSumToObjects) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const ResultSet set = random_results(seed, 50);
    const ConfusionMatrix matrix = confusion(set, .3);
    for (std::size_t k = 0; k < 4; ++k) {
      std::int64_t sum = 0, objects = 0;
      for (std::size_t found = 0; found <= 4; ++found) sum += matrix.at(k, found);
      for (const Annotation& one : set.truth.annotations)
        objects += !one.crowd && one.category_id == 10 * static_cast<std::int64_t>(k + 1);
      EXPECT_EQ(sum, objects);
    }
  }
}

TEST(Confusion, TreatsCategoriesAsOneIfClassAgnostic) {
  EXPECT_THAT(confusion(scene({{1, kHere}}, {{2, kHere, .9}}), 0, {.class_agnostic = true}).counts,
              ElementsAre(1, 0, 0, 0));
}

TEST(Confusion, SortsPairsByFrequency) {
  const ConfusionMatrix matrix{2, 0, {5, 1, 4, 3, 2, 1, 7, 7, 0}};
  const auto pairs = confused_pairs(matrix, 5);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].truth, 1U);
  EXPECT_EQ(pairs[0].found, 0U);
  EXPECT_EQ(pairs[0].count, 3);
  EXPECT_DOUBLE_EQ(pairs[0].share, .5);  // 3 of 3 + 2 + 1
  EXPECT_EQ(pairs[1].count, 1);
  EXPECT_EQ(confused_pairs(matrix, 1).size(), 1U);
}

// Three objects and, by descending score, a hit, a false positive, a hit, a false positive. F1 is
// 2 x hits / (detections + objects): 2/4, 2/5, 4/6, 4/7.
TEST(OperatingPoints, BestHasHighestF1) {
  constexpr Rectangle kThird{200, 0, 50, 50}, kWrong{200, 200, 50, 50}, kToo{120, 200, 50, 50};
  const auto points = operating_points(
      scene({{1, kHere}, {1, kElsewhere}, {1, kThird}},
            {{1, kHere, .9}, {1, kWrong, .8}, {1, kElsewhere, .7}, {1, kToo, .6}}));
  EXPECT_EQ(points.best.score, .7);
  EXPECT_DOUBLE_EQ(points.best.precision, 2 / 3.);
  EXPECT_DOUBLE_EQ(points.best.recall, 2 / 3.);
  EXPECT_DOUBLE_EQ(points.best.f1, 4 / 6.);
  ASSERT_EQ(points.curve.size(), 4U);
  EXPECT_DOUBLE_EQ(points.curve[3].f1, 4 / 7.);
}

TEST(OperatingPoints, MergeEqualScores) {
  const auto points = operating_points(scene({{1, kHere}}, {{1, kElsewhere, .9}, {1, kHere, .9}}));
  ASSERT_EQ(points.curve.size(), 1U);
  EXPECT_DOUBLE_EQ(points.best.precision, .5);
}

TEST(OperatingPoints, AreEmptyWithoutObjects) {
  EXPECT_TRUE(operating_points(ResultSet(1, 1)).curve.empty());
}

}  // namespace
}  // namespace millrace::coco
