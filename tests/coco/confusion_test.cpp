// What a detector gives at one threshold of score.
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
  const Matches matches = match(*truth, found, options, {});
  Confusion result(matches, score);
  for_each_image(*truth, found, matches, options,
                 [&](const ImagePairs& pairs) { result.add(pairs); });
  return result.matrix();
}

OperatingPoints operating_points(const ResultSet& set) {
  return operating_points(match(*set.data(), Detections(set.found), {}, {}));
}

TEST(Confusion, RowsAreWhatIsThereAndColumnsWhatWasFound) {
  ResultSet set(2, 2);
  set.object(1, 1, kHere);
  set.detection(1, 2, kHere, .9);  // c1 taken for c2
  set.object(1, 2, kElsewhere);    // c2 taken for background
  set.object(2, 2, kHere);
  set.detection(2, 2, kNear, .5);                             // right
  set.detection(2, 1, kElsewhere, .8);                        // background taken for c1
  EXPECT_THAT(confusion(set, 0).counts, ElementsAre(0, 1, 0,  //
                                                    0, 1, 1,  //
                                                    1, 0, 0));
}

TEST(Confusion, DetectionsBelowTheScoreDoNotCount) {
  ResultSet set(1, 1);
  set.object(1, 1, kHere);
  set.detection(1, 1, kHere, .4);
  EXPECT_THAT(confusion(set, .4).counts, ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(confusion(set, .5).counts, ElementsAre(0, 1, 0, 0));
}

TEST(Confusion, TheBetterScoreTakesTheObject) {
  ResultSet set(1, 2);
  set.object(1, 1, kHere);
  set.detection(1, 1, kHere, .5);
  set.detection(1, 2, kNear, .6);
  EXPECT_THAT(confusion(set, 0).counts, ElementsAre(0, 1, 0,  //
                                                    0, 0, 0,  //
                                                    1, 0, 0));
}

TEST(Confusion, OfEqualObjectsThatOfItsClassIsTaken) {
  for (const int first : {1, 2}) {
    ResultSet set(1, 2);
    set.object(1, first, kHere);
    set.object(1, 3 - first, kHere);
    set.detection(1, 1, kHere, .9);
    EXPECT_THAT(confusion(set, 0).counts, ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0));
  }
}

TEST(Confusion, CrowdsTakeInTheirOwnClass) {
  ResultSet set(1, 2);
  set.object(1, 1, kHere, /*crowd=*/true);
  set.detection(1, 1, {10, 10, 20, 20}, .9);
  set.detection(1, 2, {10, 10, 20, 20}, .8);
  EXPECT_THAT(confusion(set, 0).counts, ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 0));
}

TEST(Confusion, RowsAddUpToTheObjects) {
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

TEST(Confusion, JoinedCategoriesAreOne) {
  ResultSet set(1, 2);
  set.object(1, 1, kHere);
  set.detection(1, 2, kHere, .9);
  EXPECT_THAT(confusion(set, 0, {.class_agnostic = true}).counts, ElementsAre(1, 0, 0, 0));
}

TEST(Confusion, PairsComeByFrequency) {
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

// By falling score: hit, wrong, hit, wrong, of three objects. F1 is 2 hits / (detections +
// objects): 2/4, 2/5, 4/6, 4/7.
TEST(OperatingPoints, TheBestHasTheHighestF1) {
  ResultSet set(1, 1);
  set.object(1, 1, kHere);
  set.object(1, 1, kElsewhere);
  set.object(1, 1, {200, 0, 50, 50});
  set.detection(1, 1, kHere, .9);
  set.detection(1, 1, {200, 200, 50, 50}, .8);
  set.detection(1, 1, kElsewhere, .7);
  set.detection(1, 1, {120, 200, 50, 50}, .6);
  const auto points = operating_points(set);
  EXPECT_EQ(points.best.score, .7);
  EXPECT_DOUBLE_EQ(points.best.precision, 2 / 3.);
  EXPECT_DOUBLE_EQ(points.best.recall, 2 / 3.);
  EXPECT_DOUBLE_EQ(points.best.f1, 4 / 6.);
  ASSERT_EQ(points.curve.size(), 4U);
  EXPECT_DOUBLE_EQ(points.curve[3].f1, 4 / 7.);
}

TEST(OperatingPoints, EqualScoresAreOnePoint) {
  ResultSet set(1, 1);
  set.object(1, 1, kHere);
  set.detection(1, 1, kElsewhere, .9);
  set.detection(1, 1, kHere, .9);
  const auto points = operating_points(set);
  ASSERT_EQ(points.curve.size(), 1U);
  EXPECT_DOUBLE_EQ(points.best.precision, .5);
}

TEST(OperatingPoints, NothingThereIsNothingToSay) {
  EXPECT_TRUE(operating_points(ResultSet(1, 1)).curve.empty());
}

}  // namespace
}  // namespace millrace::coco
