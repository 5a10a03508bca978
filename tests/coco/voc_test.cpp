// Pascal VOC's AP, compared with hand-computed values and with an independent implementation on
// published results.
#include "millrace/coco/evaluation/voc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/coco/result_sets.h"
#include "tests/support/data.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"

namespace millrace::coco {
namespace {

VocEvaluation scored(const ResultSet& set) {
  return evaluate_voc(*set.data(), Detections(set.found));
}

TEST(VocAp, SupportsAreaAndElevenPoints) {
  ResultSet set(2, 1);
  set.object(1, 1, kHere);
  set.object(2, 1, kHere);
  set.detection(1, 1, kHere, .9);       // hit: precision 1, recall 1/2
  set.detection(1, 1, kElsewhere, .8);  // false positive
  set.detection(2, 1, kHere, .7);       // hit: precision 2/3, recall 1
  const auto result = scored(set);
  ASSERT_EQ(result.classes.size(), 1U);
  EXPECT_EQ(result.classes[0].objects, 2);
  EXPECT_NEAR(result.map, .5 * 1 + .5 * 2 / 3, kClose);
  EXPECT_NEAR(result.map_11, (6 * 1 + 5 * 2. / 3) / 11, kClose);
}

TEST(VocAp, CountsDuplicateDespiteUnmatchedObject) {
  ResultSet set(1, 1);
  set.object(1, 1, {0, 0, 100, 100});
  set.object(1, 1, {0, 30, 100, 100});
  set.detection(1, 1, {0, 0, 100, 100}, .9);
  set.detection(1, 1, {0, 10, 100, 100}, .8);  // IoU .82 with the first object, .67 with the second
  EXPECT_NEAR(scored(set).map, .5, kClose);
}

TEST(VocAp, IgnoresDifficultObjects) {
  ResultSet set(1, 2);
  set.object(1, 1, kHere);
  set.object(1, 1, kElsewhere);
  set.object(1, 2, kElsewhere, /*crowd=*/true);
  set.truth.annotations[1].ignored = true;
  set.detection(1, 1, kElsewhere, .9);
  set.detection(1, 1, kElsewhere, .8);  // a duplicate is ignored, too
  set.detection(1, 1, kHere, .7);
  set.detection(1, 2, kHere, .7);
  const auto result = scored(set);
  EXPECT_EQ(result.classes[0].objects, 1);
  EXPECT_EQ(result.classes[0].ap, 1);
  EXPECT_EQ(result.classes[1].ap, -1);  // no objects
  EXPECT_EQ(result.map, 1);
  EXPECT_THAT(table(result, *set.data()), ::testing::HasSubstr("c2                           0"));
}

TEST(VocAp, AcceptsIouOfExactlyHalf) {
  for (const auto& [height, ap] : {std::pair{200., 1.}, {201., 0.}}) {
    ResultSet set(1, 1);
    set.object(1, 1, {0, 0, 100, 100});
    set.detection(1, 1, {0, 0, 100, height}, .9);
    EXPECT_EQ(scored(set).map, ap) << height;
  }
}

TEST(VocAp, MatchesIndependentImplementation) {
  MILLRACE_NEEDS_DATA("eval/cocoapi100");
  MILLRACE_NEEDS_PYTHON("numpy");
  const testing::Scratch scratch;
  const auto folder = testing::data_folder() / "eval/cocoapi100";
  const auto gt = folder / "instances_val2014_100.json",
             dt = folder / "instances_val2014_fakebbox100_results.json";
  const auto out = scratch / "answers.json";
  ASSERT_EQ(testing::run_python("tests/coco/voc_answers.py '" + gt.string() + "' '" + dt.string() +
                                "' '" + out.string() + "'"),
            0);
  const auto expected = nlohmann::json::parse(std::ifstream(out));
  const auto truth = read_dataset(gt);
  const auto result = evaluate_voc(*truth, read_detections(dt, truth.get()));
  ASSERT_EQ(result.classes.size(), expected.size());
  int informative_cases = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const auto& own = result.classes[k];
    EXPECT_EQ(own.category_id, expected[k][0].get<std::int64_t>());
    EXPECT_NEAR(own.ap, expected[k][1].get<double>(), kClose) << own.category_id;
    EXPECT_NEAR(own.ap_11, expected[k][2].get<double>(), kClose) << own.category_id;
    informative_cases += own.ap > 0 && own.ap < 1;
  }
  EXPECT_GT(informative_cases, 20);
}

}  // namespace
}  // namespace millrace::coco
