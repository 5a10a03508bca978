// The streaming evaluator returns the same results as evaluate(), in whatever order images are
// added.
#include "millrace/coco/evaluation/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <thread>

#include "millrace/base/errors.h"
#include "tests/coco/result_sets.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Random results, grouped by image.
struct Stream {
  std::shared_ptr<const Dataset> truth;
  Detections all;
  std::vector<std::int64_t> images;  // in random order
  std::map<std::int64_t, std::vector<Detection>> found;

  explicit Stream(unsigned seed, bool masks = false) {
    ResultSet set = mixed_results(seed);
    if (masks) set.add_masks();
    truth = set.data();
    all = Detections(set.found);
    for (const auto& image : truth->images) images.push_back(image.id), found[image.id] = {};
    std::ranges::shuffle(images, std::mt19937(seed));
    for (const auto& one : set.found) found[one.image_id].push_back(one);
  }

  void add(Evaluator& evaluator, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) evaluator.add(images[i], found.at(images[i]));
  }
};

TEST(Evaluator, MatchesEvaluationOfAllDetections) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    EvaluateOptions options;
    options.iou = seed % 2 == 0 ? IouType::box : seed % 3 == 0 ? IouType::boundary : IouType::mask;
    options.area = seed % 4 == 1 ? AreaFrom::mask : AreaFrom::box;
    options.class_agnostic = seed % 3 == 0;
    if (seed % 5 == 0) options.max_detections = {3, 1};
    const Stream stream(seed, seed % 2);
    Evaluator evaluator(stream.truth, options);
    stream.add(evaluator, 0, stream.images.size());
    EXPECT_EQ(evaluator.images(), stream.images.size());
    expect_equal(evaluator.result(), evaluate(*stream.truth, stream.all, options));
  }
}

TEST(Evaluator, AcceptsImagesFromSeveralThreads) {
  const Stream stream(7);
  Evaluator evaluator(stream.truth, {});
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] { stream.add(evaluator, 4 * t, 4 * t + 4); });
  for (auto& thread : threads) thread.join();
  expect_equal(evaluator.result(), evaluate(*stream.truth, stream.all, {}));
}

TEST(Evaluator, MergesPartsInAnyOrder) {
  const Stream stream(8, true);
  const EvaluateOptions options{.iou = IouType::mask};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    Evaluator rank(stream.truth, options);
    stream.add(rank, 4 * i, 4 * i + 4);
    parts.push_back(rank.partial());
  }
  const auto expected = evaluate(*stream.truth, stream.all, options);
  Evaluator forth(stream.truth, options), back(stream.truth, options);
  for (const auto& part : parts) forth.merge(part);
  std::reverse(parts.begin(), parts.end());
  for (const auto& part : parts) back.merge(part);
  expect_equal(forth.result(), expected);
  expect_equal(back.result(), expected);
  EXPECT_EQ(forth.partial(), back.partial());
}

TEST(Evaluator, EvaluatesAddedImagesUnlessScopeIsAll) {
  const Stream stream(9);
  Evaluator evaluator(stream.truth, {});
  stream.add(evaluator, 0, 5);
  const std::vector<std::int64_t> added(stream.images.begin(), stream.images.begin() + 5);
  expect_equal(evaluator.result(), evaluate(*stream.truth, stream.all, {}, added));

  std::vector<Detection> found;
  for (const auto id : added) std::ranges::copy(stream.found.at(id), std::back_inserter(found));
  expect_equal(evaluator.result(Evaluator::Scope::all),
               evaluate(*stream.truth, Detections(found), {}));
}

TEST(Evaluator, CountsUnknownCategories) {
  const Stream stream(1);
  Evaluator evaluator(stream.truth, {}), other(stream.truth, {});
  EXPECT_EQ(other.result().stats[0], -1) << "nothing was added";
  evaluator.add(1, std::vector<Detection>{{1, 99, Xywh{}, .5}, {1, 98, Xywh{}, .5}});
  other.merge(evaluator.partial());
  EXPECT_EQ(other.result().unknown_categories, 2);
}

TEST(Evaluator, RejectsUnknownAndRepeatedImages) {
  const Stream stream(1);
  Evaluator evaluator(stream.truth, {});
  const auto told = [&](std::int64_t image, const std::vector<Detection>& found = {}) {
    return testing::message_of([&] { evaluator.add(image, found); });
  };
  EXPECT_THAT(told(99), HasSubstr("image 99: not in made"));
  EXPECT_EQ(told(3), "");
  EXPECT_THAT(told(3), HasSubstr("image 3: already added"));
  EXPECT_THAT(told(4, {{5, 1, Xywh{1, 1, 1, 1}, .5}}),
              AllOf(HasSubstr("image 4: "), HasSubstr("image 5")));
  EXPECT_THAT(told(4, {{4, 1, {}, .5, {}}}), AllOf(HasSubstr("(image 4) "), HasSubstr("box")));
  EXPECT_EQ(told(4), "") << "a failed add() must change nothing";
  EXPECT_EQ(evaluator.images(), 2U);
}

TEST(Evaluator, RejectsMismatchedParts) {
  const Stream stream(1), other(2);
  Evaluator evaluator(stream.truth, {}), here(stream.truth, {});
  stream.add(evaluator, 0, 6);
  stream.add(here, 5, 8);
  const auto before = here.partial();
  const auto merge = [&](const Evaluator& from) {
    return testing::message_of([&] { here.merge(from.partial()); });
  };
  EXPECT_THAT(merge(evaluator), HasSubstr("in two partial"));
  EXPECT_THAT(merge(Evaluator(other.truth, {})), HasSubstr("another data set"));
  EXPECT_THAT(merge(Evaluator(stream.truth, {.class_agnostic = true})), HasSubstr("other options"));
  EXPECT_THAT(merge(Evaluator(stream.truth, {.max_detections = {100}})),
              HasSubstr("other options"));
  EXPECT_EQ(here.partial(), before);
}

TEST(Evaluator, RejectsDamagedPart) {
  const Stream stream(1);
  Evaluator evaluator(stream.truth, {});
  stream.add(evaluator, 0, 6);
  const std::string whole = evaluator.partial();
  const auto merged = [&](std::string_view part) {
    Evaluator here(stream.truth, {});
    return testing::message_of([&] { here.merge(part); });
  };
  EXPECT_EQ(merged(whole), "");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NE(merged(std::string_view(whole).substr(0, i)), "");
    std::string changed = whole;
    changed[i] ^= 0x10;
    EXPECT_NE(merged(changed), "") << i;
  }
  EXPECT_NE(merged(whole + whole), "");
}

}  // namespace
}  // namespace millrace::coco
