// Scores of a detector over the validation split, as a whole and in parts.
#include "millrace/trainer/detector_evaluation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <thread>

#include "millrace/base/errors.h"
#include "tests/support/fake_training.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Evaluation, LeavesClassesOutThatAreNotAskedFor) {
  LineDetector model;
  auto data = fake_validation();
  auto more = fake_truth();
  more.add_category(9, "ring");
  more.annotations[3].category_id = 9;
  data.split = make_split(assemble(std::move(more), "fake"), "nowhere", {"star"});
  const auto scores = evaluate_detector(model, data);
  EXPECT_EQ(scores->boxes.category_ids, std::vector<std::int64_t>{7});
  EXPECT_EQ(scores->images, 10);
}

TEST(Evaluation, StopsWhereItIsCancelled) {
  LineDetector model;
  EXPECT_FALSE(
      evaluate_detector(model, fake_validation(), {.watch = {.cancelled = [] { return true; }}}));
}

/// Its boxes are off by 0, 9 or 18 pixels: some are right, some only at IoU 0.5, some never.
struct OffDetector final : LineDetector {
  std::vector<std::vector<DetectedObject>> detect(const Batch& batch) override {
    std::vector<std::vector<DetectedObject>> found;
    for (const auto& image : batch.images) {
      const auto shift = 9 * static_cast<float>(image.image_id % 3);
      found.push_back({{.box = {10 + shift, 10, 40 + shift, 40}, .label = 0, .score = 0.9F}});
    }
    return found;
  }
};

/// What a part of the images comes to: positions `first` to `end` of the fake flow.
std::string part(std::int64_t first, std::int64_t end) {
  DetectorEvaluation evaluation(fake_validation().split, {});
  OffDetector model;
  EXPECT_TRUE(evaluation.detect(model, std::make_unique<FakeFlow>(kEpochImages, first, end)));
  return evaluation.partial();
}

TEST(Evaluation, OfShardsIsThatOfAllImagesToTheBit) {
  OffDetector model;
  const auto whole = evaluate_detector(model, fake_validation());
  std::array<std::string, 3> parts;
  {
    std::vector<std::jthread> threads;
    for (const auto shard : {0, 1, 2})
      threads.emplace_back(
          [&parts, shard] { parts.at(shard) = part(shard * 4, std::min(shard * 4 + 4, 10)); });
  }
  for (int i = 0; i < 3; ++i) {
    std::ranges::rotate(parts, parts.begin() + 1);
    DetectorEvaluation all(fake_validation().split, {});
    for (const auto& one : parts) all.merge(one);
    const auto scores = all.scores();
    EXPECT_EQ(scores.boxes.stats, whole->boxes.stats);
    EXPECT_EQ(scores.boxes.precision, whole->boxes.precision);
    EXPECT_EQ(scores.boxes.scores, whole->boxes.scores);
    EXPECT_EQ(scores.images, whole->images);
    EXPECT_EQ(scores.found, whole->found);
    EXPECT_FALSE(scores.masks);
  }
}

TEST(Evaluation, TakesEachImageOnce) {
  DetectorEvaluation evaluation(fake_validation().split, {});
  OffDetector model;
  const auto flow = [](std::int64_t first, std::int64_t end) {
    return std::make_unique<FakeFlow>(kEpochImages, first, end);
  };
  EXPECT_TRUE(evaluation.detect(model, flow(0, 10)));
  EXPECT_THAT([&] { evaluation.detect(model, flow(10, 12)); },
              ThrowsMessage<Error>(HasSubstr("it was added before")));
  EXPECT_THAT([&] { evaluation.merge(part(4, 6)); },
              ThrowsMessage<Error>(HasSubstr("two partial results")));
}

TEST(Evaluation, RefusesBrokenPartials) {
  const auto good = part(0, 4);
  const auto end = good.find('\n');
  for (const std::string& bad :
       std::vector<std::string>{"", good.substr(0, end), good.substr(0, end + 9), "x" + good,
                                good.substr(0, good.size() - 1), "1 0 99999999\n", "8 8 -1\n"}) {
    DetectorEvaluation evaluation(fake_validation().split, {});
    EXPECT_THAT([&] { evaluation.merge(bad); }, ThrowsMessage<Error>(HasSubstr("broken")));
  }
}

TEST(Evaluation, CountsImagesThatCouldNotBeReadAsWithoutDetections) {
  auto data = fake_validation();
  OffDetector model;
  const auto whole = evaluate_detector(model, data);
  data.start = [](Share share) { return std::make_unique<FakePass>(8, share); };
  const auto some = evaluate_detector(model, data);
  EXPECT_EQ(some->images, 8);
  EXPECT_LT(some->boxes.stats[8], whole->boxes.stats[8]);  // AR100
  const auto asked = evaluate_detector(model, data, {.max_images = 8});
  EXPECT_GT(asked->boxes.stats[8], some->boxes.stats[8]);
  EXPECT_EQ(evaluate_detector(model, data, {.max_images = 3})->images, 3);
}

TEST(Evaluation, RefusesMasksForSomeObjectsOnly) {
  struct Half final : LineDetector {
    std::vector<std::vector<DetectedObject>> detect(const Batch& batch) override {
      auto found = LineDetector::detect(batch);
      found[0][0].mask = {.height = 64, .width = 64, .counts = {0, 64 * 64}};
      return found;
    }
  } model;
  EXPECT_THAT([&] { evaluate_detector(model, fake_validation()); },
              ThrowsMessage<Error>(HasSubstr("masks for 5 of 10 objects")));
}

}  // namespace
}  // namespace millrace::testing
