// The viewer's JSON for an analysis, also for an empty one.
#include "millrace/tools/report/analysis_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coco/result_sets.h"

namespace millrace::report {
namespace {

using coco::ResultSet;

nlohmann::ordered_json view_of(const ResultSet& set, const coco::EvaluateOptions& options = {}) {
  const coco::Detections found(set.found), none;
  return analysis_view(coco::analyze(*set.data(), found, options, 5, &none), options.iou);
}

TEST(AnalysisView, ContainsEverySection) {
  const auto view = view_of(coco::random_results(1));
  for (const char* key : {"stats", "per_class", "errors", "operating_point", "confusion", "curves",
                          "bootstrap", "versus"})
    EXPECT_TRUE(view.contains(key)) << key;
  EXPECT_EQ(view["iou"], "bbox");
  EXPECT_EQ(view["curves"]["mean"].size(), coco::kThresholds);
  EXPECT_GT(view["curves"]["score"].size(), 1U);
  EXPECT_EQ(view["per_class"][0]["precision50"].size(), 26U);
}

TEST(AnalysisView, AcceptsEmptyData) {
  for (const bool joined : {false, true}) {
    EXPECT_EQ(view_of(ResultSet(0, 0), {.class_agnostic = joined})["stats"][0], -1);
    ResultSet set(2, 2);
    set.detection(1, 1, {0, 0, 10, 10}, 7);
    EXPECT_EQ(view_of(set, {.class_agnostic = joined})["stats"][0], -1);
    set.object(2, 2, {0, 0, 10, 10});
    EXPECT_EQ(view_of(set, {.class_agnostic = joined})["stats"][0], 0);
  }
}

TEST(AnalysisView, ListsConfusionPairsForManyClasses) {
  ResultSet set(1, 200);
  set.object(1, 150, {0, 0, 10, 10});
  set.detection(1, 151, {0, 0, 10, 10}, .9);
  const auto confusion = view_of(set)["confusion"];
  EXPECT_FALSE(confusion.contains("matrix"));
  EXPECT_EQ(confusion["pairs"],
            nlohmann::ordered_json::parse(R"([{"truth":149,"found":150,"count":1,"share":1.0}])"));
}

}  // namespace
}  // namespace millrace::report
