// An analysis and its JSON are the same for any number of threads.
#include "millrace/coco/analysis/analysis.h"

#include <gtest/gtest.h>

#include "millrace/coco/analysis/analysis_json.h"
#include "tests/coco/result_sets.h"

namespace millrace::coco {
namespace {

TEST(Analysis, IsIndependentOfThreadCount) {
  const ResultSet set = random_results(3, 100);
  auto worse = set.found;
  for (auto& one : worse) (*one.bbox)[0] += 2;
  const Detections versus(worse);
  const auto with = [&](int threads) {
    return analyze(*set.data(), Detections(set.found), {.threads = threads}, 50, &versus);
  };
  const Analysis one = with(1), many = with(2);
  EXPECT_EQ(one.errors.all.cost, many.errors.all.cost);
  EXPECT_EQ(one.errors.all.count, many.errors.all.count);
  EXPECT_EQ(one.confusion.counts, many.confusion.counts);
  const auto numbers = [](const Spread& spread) {
    std::vector<double> all;
    for (const auto& [value, low, high] : {spread.ap, spread.ap50})
      all.insert(all.end(), {value, low, high});
    for (const auto& [value, low, high] : spread.category_ap)
      all.insert(all.end(), {value, low, high});
    return all;
  };
  EXPECT_EQ(numbers(*one.spread), numbers(*many.spread));
  EXPECT_EQ(numbers(one.versus->difference), numbers(many.versus->difference));
  EXPECT_EQ(one.versus->category_p, many.versus->category_p);
  EXPECT_EQ(sentence(*one.versus), sentence(*many.versus));
  const auto written = [](const Analysis& analysis) {
    nlohmann::ordered_json json;
    add_analysis(json, analysis, /*analyzed=*/true);
    return json.dump();
  };
  EXPECT_EQ(written(one), written(many));
}

}  // namespace
}  // namespace millrace::coco
