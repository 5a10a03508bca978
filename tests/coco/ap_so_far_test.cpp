// AP during an evaluation, from the images added so far.
#include "millrace/coco/analysis/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/coco/result_sets.h"

namespace millrace::coco {
namespace {

constexpr std::size_t kDraws = 200;

/// Returns the detections of an image.
std::vector<Detection> found_in(const ResultSet& set, std::int64_t image) {
  std::vector<Detection> found;
  std::ranges::copy_if(set.found, std::back_inserter(found),
                       [&](const Detection& one) { return one.image_id == image; });
  return found;
}

TEST(ApSoFar, CoversAddedImages) {
  const auto set = random_results(11);
  const auto truth = set.data();
  Evaluator evaluator(truth, {});
  EXPECT_EQ(ap_text(ap_so_far(evaluator, kDraws)), "-") << "nothing was added";
  std::vector<std::int64_t> added;
  for (const std::int64_t image : {7, 3, 30, 12, 1}) {
    evaluator.add(image, found_in(set, image));
    added.push_back(image);
    const Detections all(set.found);
    EXPECT_NEAR(ap_so_far(evaluator, kDraws).value, evaluate(*truth, all, {}, added).stats[0],
                kClose);
  }
}

TEST(ApSoFar, MatchesBootstrapOfAllImages) {
  const auto set = random_results(12);
  const auto truth = set.data();
  Evaluator forth(truth, {}), back(truth, {});
  for (std::int64_t i = 1; i <= 30; ++i) forth.add(i, found_in(set, i));
  for (std::int64_t i = 30; i >= 1; --i) back.add(i, found_in(set, i));
  const Plan plan(*truth, {});
  const Matches matches = match(plan, Detections(set.found), {});
  const Matches* alone[] = {&matches};
  const auto whole = spread(resample(WeightedAp(plan, alone), 30, kDraws)).ap;
  for (const auto* evaluator : {&forth, &back}) {
    const auto ap = ap_so_far(*evaluator, kDraws);
    EXPECT_EQ(ap.value, whole.value);
    EXPECT_EQ(ap.low, whole.low);
    EXPECT_EQ(ap.high, whole.high);
  }
}

TEST(ApSoFar, DoesNotChangeResult) {
  const auto set = random_results(13);
  const auto truth = set.data();
  Evaluator watched(truth, {}), alone(truth, {});
  for (std::int64_t i = 1; i <= 30; ++i) {
    watched.add(i, found_in(set, i));
    alone.add(i, found_in(set, i));
    ap_so_far(watched, 3);
  }
  EXPECT_EQ(watched.partial(), alone.partial());
  expect_equal(watched.result(), alone.result());
}

TEST(ApSoFar, PrintsInterval) {
  EXPECT_EQ(ap_text({.412345, .3941, .43}), "0.412 (0.394 .. 0.430)");
}

}  // namespace
}  // namespace millrace::coco
