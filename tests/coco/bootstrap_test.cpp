// AP under weights of the images, and the intervals made from it.
#include "millrace/coco/analysis/bootstrap.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include "tests/coco/result_sets.h"

namespace millrace::coco {
namespace {

WeightedAp weighted(const Dataset& truth, const Matches& matches, bool joined = false) {
  const Matches* one[] = {&matches};
  return {truth, one, joined};
}

std::vector<ApPair> measured(const ResultSet& set, const std::vector<std::uint16_t>& weights,
                             const EvaluateOptions& options = {}) {
  const auto truth = set.data();
  const Matches matches = match(*truth, Detections(set.found), options, {});
  const WeightedAp ap = weighted(*truth, matches, options.class_agnostic);
  std::vector<ApPair> result(ap.categories());
  ap.measure(weights, result);
  return result;
}

Resamples drawn(const ResultSet& set, std::size_t draws) {
  const auto truth = set.data();
  const Matches matches = match(*truth, Detections(set.found), {}, {});
  return resample(weighted(*truth, matches), truth->images.size(), draws);
}

TEST(WeightedAp, WeightsOfOneGiveTheEvaluatorsFigures) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const ResultSet set = random_results(seed);
    for (const IouType iou : {IouType::box, IouType::mask}) {
      for (const bool joined : {false, true}) {
        const EvaluateOptions options{.iou = iou, .class_agnostic = joined};
        const Evaluation plain = evaluate(*set.data(), Detections(set.found), options);
        const auto categories = measured(set, std::vector<std::uint16_t>(30, 1), options);
        EXPECT_NEAR(mean(categories).ap, plain.stats[0], kClose);
        EXPECT_NEAR(mean(categories).ap50, plain.stats[1], kClose);
        for (std::size_t k = 0; k < categories.size(); ++k)
          EXPECT_NEAR(categories[k].ap, plain.category_ap[k], kClose);
      }
    }
  }
}

/// The set with image i as often as weights[i] says.
ResultSet copied(const ResultSet& set, const std::vector<std::uint16_t>& weights) {
  ResultSet copies(0, 0);
  copies.truth.categories = set.truth.categories;
  copies.truth.names = set.truth.names;
  std::int64_t image = 0, id = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
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
  }
  return copies;
}

TEST(WeightedAp, AnImageThatCountsTwiceIsLikeTwoOfIt) {
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
}

TEST(WeightedAp, WithoutObjectsThereIsNothingToSay) {
  const ResultSet set = random_results(1);
  EXPECT_EQ(mean(measured(set, std::vector<std::uint16_t>(30, 0))).ap, -1);
}

TEST(Bootstrap, TheNumberOfThreadsDoesNotMatter) {
  const ResultSet set = random_results(2);
  const auto with = [&](int threads) {
    return tbb::task_arena(threads).execute([&] { return spread(drawn(set, 100)); });
  };
  const Spread one = with(1), many = with(2);
  EXPECT_EQ(many.ap.low, one.ap.low);
  EXPECT_EQ(many.ap.high, one.ap.high);
  EXPECT_EQ(many.ap50.low, one.ap50.low);
  for (std::size_t k = 0; k < one.category_ap.size(); ++k)
    EXPECT_EQ(many.category_ap[k].high, one.category_ap[k].high);
}

TEST(Bootstrap, ImagesThatAreAllAlikeLeaveNoDoubt) {
  const ResultSet set = copied(random_results(3, 1), {20});
  const Spread sure = spread(drawn(set, 50));
  ASSERT_GT(sure.ap.value, 0);
  EXPECT_NEAR(sure.ap.low, sure.ap.value, kClose);
  EXPECT_NEAR(sure.ap.high, sure.ap.value, kClose);
}

// One object is found, that of the other image is not. As it is, precision is 1 up to recall .5: AP
// = 51 / 101. A draw takes the first image twice (AP 1) or the second (AP 0) with a probability of
// a quarter each, so the percentiles are 0 and 1 and the basic interval goes from 2 x 51/101 - 1 =
// 1/101 to 102/101, cut to 1.
TEST(Bootstrap, TheIntervalIsTheBasicOne) {
  ResultSet set(2, 1);
  set.object(1, 1, {10, 10, 50, 50});
  set.object(2, 1, {10, 10, 50, 50});
  set.detection(1, 1, {10, 10, 50, 50}, .9);
  const Spread result = spread(drawn(set, 200));
  EXPECT_NEAR(result.ap.value, 51 / 101., kClose);
  EXPECT_NEAR(result.ap.low, 1 / 101., kClose);
  EXPECT_EQ(result.ap.high, 1);
}

TEST(Bootstrap, ACategoryWithoutObjectsHasNoInterval) {
  ResultSet set(2, 2);
  set.object(1, 1, {10, 10, 50, 50});
  const Spread result = spread(drawn(set, 20));
  EXPECT_EQ(result.ap.value, 0);
  EXPECT_TRUE(std::isnan(result.category_ap[1].low));
}

}  // namespace
}  // namespace millrace::coco
