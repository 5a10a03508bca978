// The AP lost to the limit on detections, compared with hand-computed values and with the
// evaluator.
#include "millrace/coco/evaluation/limit_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/coco/data/records.h"

namespace millrace::coco {
namespace {

/// Returns a data set whose images 1, 2, ... contain these numbers of objects of class 7. The
/// objects do not overlap.
std::shared_ptr<const Dataset> objects_in(const std::vector<int>& counts, bool lvis = false) {
  Records records;
  records.add_category(7, "wheat");
  records.add_category(8, "weed");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto id = static_cast<std::int64_t>(i) + 1;
    records.add_image(id, "", 1000, 1000);
    for (int k = 0; k < counts[i]; ++k)
      records.add({.id = static_cast<std::int64_t>(records.annotations.size()) + 1,
                   .image_id = id,
                   .category_id = 7,
                   .bbox = {20. * (k % 50), 20. * (k / 50), 10, 10},
                   .area = 100});
  }
  if (lvis) records.category_lists = {8}, records.images[0].negatives = 1;
  return assemble(std::move(records), "made");
}

/// Evaluates perfect detections: one per object, with the object's box.
Evaluation perfect(const Dataset& truth, const EvaluateOptions& options) {
  std::vector<Detections::Record> all;
  for (const auto& object : truth.annotations) {
    Detections::Record one;
    one.image_id = object.image_id;
    one.category_id = object.category_id;
    std::copy_n(object.bbox, 4, one.bbox.begin());
    one.has_bbox = true;
    one.score = 1;
    all.push_back(one);
  }
  return evaluate(truth, Detections(std::move(all)), options);
}

TEST(LimitCost, IsZeroWithinLimit) {
  const auto truth = objects_in({100, 3, 0});
  const auto cost = limit_cost(*truth, options_for(*truth, IouType::box));
  EXPECT_EQ(cost.images, 3U);
  EXPECT_EQ(cost.images_over_limit, 0U);
  EXPECT_EQ(cost.best_ap, 1);
  EXPECT_EQ(text(cost), "");
}

TEST(LimitCost, ReportsImagesOverLimitAndBestAp) {
  // 220 of 320 objects can be found, so precision is 1 at the 69 recalls from 0 to 0.68.
  const auto truth = objects_in({150, 150, 20});
  const auto options = options_for(*truth, IouType::mask);
  const auto cost = limit_cost(*truth, options);
  EXPECT_EQ(cost.limit, 100U);
  EXPECT_EQ(cost.images_over_limit, 2U);
  EXPECT_NEAR(cost.best_ap, 69. / 101, 1e-9);
  EXPECT_EQ(cost.best_ap, perfect(*truth, options_for(*truth, IouType::box)).stats[0]);
  for (const auto* part : {"2 of 3 images", "100 objects of a class", "0.68"})
    EXPECT_THAT(text(cost), ::testing::HasSubstr(part));
}

TEST(LimitCost, UsesGivenLimit) {
  const auto truth = objects_in({150, 150, 20});
  const auto options = options_for(*truth, IouType::box, 150);
  EXPECT_EQ(limit_cost(*truth, options).images_over_limit, 0U);
  const auto all = perfect(*truth, options),
             usual = perfect(*truth, options_for(*truth, IouType::box));
  EXPECT_NEAR(all.stats[0], 1, 1e-9);
  EXPECT_NEAR(all.stats[9], 1, 1e-9);  // AR of small objects
  for (const std::size_t recall : {6, 7, 8}) EXPECT_EQ(all.stats[recall], usual.stats[recall]);
  EXPECT_EQ(perfect(*truth, options_for(*truth, IouType::box, 100)).stats, usual.stats);
}

TEST(LimitCost, CombinesClassesForLvis) {
  const auto truth = objects_in({350, 1}, /*lvis=*/true);
  const auto cost = limit_cost(*truth, options_for(*truth, IouType::box));
  EXPECT_EQ(cost.limit, 300U);
  EXPECT_EQ(cost.images_over_limit, 1U);
  EXPECT_FALSE(cost.by_class);
  EXPECT_EQ(limit_cost(*truth, options_for(*truth, IouType::box, 400)).images_over_limit, 0U);
}

TEST(LimitCost, CountsGivenImagesOnly) {
  const auto truth = objects_in({150, 20});
  const std::vector<std::int64_t> second{2};
  const auto cost = limit_cost(*truth, options_for(*truth, IouType::box), second);
  EXPECT_EQ(cost.images, 1U);
  EXPECT_EQ(cost.images_over_limit, 0U);
}

}  // namespace
}  // namespace millrace::coco
