// The evaluator returns the same values as pycocotools, up to rounding in the last bits.
#include "millrace/coco/evaluation/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <span>

#include "tests/coco/result_sets.h"
#include "tests/support/data.h"

namespace millrace::coco {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

nlohmann::json load(const std::filesystem::path& file) {
  std::ifstream in(file);
  return nlohmann::json::parse(in);
}

/// Compares the evaluator with every run in the folder's expected.json.
void expect_figures(const std::filesystem::path& folder) {
  const auto expected = load(folder / "expected.json");
  ASSERT_FALSE(expected["runs"].empty());
  for (const auto& run : expected["runs"]) {
    SCOPED_TRACE(folder.string() + ": " + run["dt"].get<std::string>() + " " +
                 run["iouType"].get<std::string>() + " " + run["useCats"].dump());
    const auto truth = read_dataset(folder / run.value("gt", expected.value("gt", "")));
    const auto detections = read_detections(folder / run["dt"].get<std::string>(), truth.get());
    EvaluateOptions options;
    options.area = area_from(detections);
    options.iou = run["iouType"] == "segm" ? IouType::mask : IouType::box;
    options.class_agnostic = run["useCats"] == 0;
    const Evaluation result = evaluate(*truth, detections, options);
    for (std::size_t i = 0; i < result.stats.size(); ++i)
      EXPECT_NEAR(result.stats[i], run["stats"][i].get<double>(), kClose) << kStatNames[i];
    for (const auto& [id, ap] : run["per_category_AP"].items()) {
      const int k = truth->category_index(std::stoll(id));
      ASSERT_GE(k, 0);
      EXPECT_NEAR(result.category_ap[static_cast<std::size_t>(k)], ap.get<double>(), kClose) << id;
    }
  }
}

TEST(Evaluate, MatchesHandMadeSet) { expect_figures("tests/coco/fixture"); }

TEST(Evaluate, MatchesOfficialFakeResults) {
  MILLRACE_NEEDS_DATA("eval/cocoapi100");
  expect_figures(testing::data_folder() / "eval/cocoapi100");
}

TEST(Evaluate, MatchesEdgeCases) {
  MILLRACE_NEEDS_DATA("eval/hotcoco_edge");
  expect_figures(testing::data_folder() / "eval/hotcoco_edge");
}

TEST(Evaluate, HandlesTiesAndEmptyMasks) {
  MILLRACE_NEEDS_DATA("eval/syn_A_val");
  expect_figures(testing::data_folder() / "eval/syn_A_val");
}

TEST(Evaluate, PrintsOfficialTable) {
  MILLRACE_NEEDS_DATA("eval/cocoapi100");
  const auto folder = testing::data_folder() / "eval/cocoapi100";
  const auto truth = read_dataset(folder / "instances_val2014_100.json");
  const auto found = read_detections(folder / "instances_val2014_fakebbox100_results.json");
  const std::string text = table(evaluate(*truth, found, {}), IouType::box);
  for (const char* line :
       {" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.505\n",
        " Average Precision  (AP) @[ IoU=0.75      | area=   all | maxDets=100 ] = 0.573\n",
        " Average Recall     (AR) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ] = 0.566\n",
        " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.387\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

/// Returns one image with `objects` objects of one category, 40 x 40 pixels each, side by side.
Records row_of(int objects) {
  Records set;
  set.add_image(1, "a.jpg", 100000, 100);
  set.add_category(1, "thing");
  for (int i = 0; i < objects; ++i)
    set.add(
        {.id = i + 1, .image_id = 1, .category_id = 1, .bbox = {50. * i, 0, 40, 40}, .area = 1600});
  return set;
}

Evaluation evaluate(const Records& set, std::span<const Detection> found,
                    const EvaluateOptions& options) {
  return evaluate(*assemble(set, "made"), Detections(found), options);
}

// pycocotools overwrites 'ignore' with 'iscrowd'.
TEST(Evaluate, CountsObjectsMarkedAsIgnored) {
  auto set = row_of(3);
  const std::vector found = {on(set.annotations[0], .9), on(set.annotations[1], .9)};
  const auto expected = evaluate(set, found, {});
  for (auto& object : set.annotations) object.ignored = true;
  EXPECT_EQ(evaluate(set, found, {}).stats, expected.stats);
  EXPECT_LT(expected.stats[0], 0.7) << "one of three is missed";
}

TEST(Evaluate, MatchesPycocotoolsForOneHit) {
  Records set = row_of(1);
  auto& object = set.annotations[0];
  const std::vector found = {on(object, .9)};
  const auto result = evaluate(set, found, {});
  EXPECT_EQ(result.precision[0], 0.9999999999999998)
      << "numpy.spacing(1) is added to the denominator";
  EXPECT_EQ(result.stats[6], 1);
  object.area = 1024;
  const auto stats = evaluate(set, found, {}).stats;
  EXPECT_THAT(std::vector(stats.begin() + 9, stats.end()), ElementsAre(1, 1, -1))
      << "an area at a limit belongs to both ranges";
  object.id = 0;
  EXPECT_EQ(evaluate(set, found, {}).stats[0], 0) << "an object with id 0 is never hit";
}

TEST(Evaluate, IgnoresDetectionsInCrowds) {
  Records set = row_of(2);
  set.annotations[1].crowd = true;
  std::vector found = {on(set.annotations[0], .5)};
  for (int i = 0; i < 5; ++i) found.push_back(on(set.annotations[1], .9));
  EXPECT_NEAR(evaluate(set, found, {}).stats[0], 1, kClose);
}

TEST(Evaluate, CountsBestHundredPerImage) {
  const Records set = row_of(101);
  std::vector<Detection> found;
  for (const auto& object : set.annotations)
    found.push_back(on(object, 1. / static_cast<double>(object.id)));
  const auto result = evaluate(set, found, {});
  EXPECT_DOUBLE_EQ(result.stats[6], 1 / 101.);
  EXPECT_DOUBLE_EQ(result.stats[7], 10 / 101.);
  EXPECT_DOUBLE_EQ(result.stats[8], 100 / 101.);
}

TEST(Evaluate, ReturnsMinusOneWithoutObjects) {
  const Records set = row_of(3);
  for (const std::size_t i : {0, 8}) EXPECT_EQ(evaluate(set, {}, {}).stats[i], 0);
  EXPECT_THAT(evaluate(row_of(0), std::vector{on(set.annotations[0], 1)}, {}).stats,
              ::testing::Each(-1));
}

TEST(Evaluate, IgnoresUnknownImagesAndCategories) {
  const Records set = row_of(1);
  std::vector found = {on(set.annotations[0], .5), on(set.annotations[0], .9),
                       on(set.annotations[0], .9)};
  found[1].image_id = 7;
  found[2].category_id = 7;
  const auto result = evaluate(set, found, {});
  EXPECT_NEAR(result.stats[0], 1, kClose);
  EXPECT_EQ(result.unknown_images, 1);
  EXPECT_EQ(result.unknown_categories, 1);
}

TEST(Evaluate, UsesBoxesIfMasksAreMissing) {
  Records set = row_of(1);
  set.annotations[0].shape =
      set.add_mask(from_polygons(std::vector<Polygon>{{0, 0, 40, 0, 40, 40, 0, 40}}, 100, 100000));
  const auto result =
      evaluate(set, std::vector{on(set.annotations[0], .9)}, {.iou = IouType::mask});
  EXPECT_NEAR(result.stats[0], 1, kClose);
}

TEST(Evaluate, IsIndependentOfDetectionOrder) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    ResultSet set = mixed_results(seed);
    const auto result = evaluate(set.truth, set.found, {});
    std::shuffle(set.found.begin(), set.found.end(), std::mt19937(seed));
    expect_equal(evaluate(set.truth, set.found, {}), result);
  }
}

TEST(Evaluate, DuplicatesNeverRaiseAp) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    ResultSet set = mixed_results(seed);
    const auto result = evaluate(set.truth, set.found, {});
    std::mt19937 random(seed);
    for (std::size_t i = set.found.size(); i-- > 0;)
      if (random() % 2) set.found.push_back(set.found[i]);
    const auto more = evaluate(set.truth, set.found, {});
    for (std::size_t k = 0; k < result.category_ap.size(); ++k)
      EXPECT_LE(more.category_ap[k], result.category_ap[k] + kClose);
  }
}

TEST(Evaluate, SortsLimitsAndRepeatsLast) {
  const ResultSet set = mixed_results(6);
  const auto with = [&](std::vector<std::uint32_t> limits) {
    return evaluate(set.truth, set.found, {.max_detections = std::move(limits)});
  };
  const auto usual = with({100, 1, 10}), one = with({100}), without_hundred = with({5, 50, 500});
  expect_equal(usual, evaluate(set.truth, set.found, {}));
  EXPECT_THAT(usual.max_detections, ElementsAre(1, 10, 100));
  EXPECT_EQ(one.stats[0], usual.stats[0]);
  for (const std::size_t i : {6, 7, 8}) EXPECT_EQ(one.stats[i], usual.stats[8]);
  EXPECT_EQ(one.stats[11], usual.stats[11]);
  EXPECT_EQ(without_hundred.stats[0], -1) << "as in pycocotools";
  EXPECT_GT(without_hundred.stats[1], 0);
  EXPECT_THAT(table(without_hundred, IouType::box), HasSubstr("maxDets=100 ] = -1.000"));
}

TEST(Evaluate, FindsAllObjectsInCrowdedImage) {
  // More detection-object pairs than are computed at once.
  constexpr int kSide = 50, kObjects = kSide * kSide;
  ResultSet set(1, 1);
  for (int i = 0; i < kObjects; ++i) {
    const Rectangle box{6.0 * (i % kSide), 6.0 * (i / kSide), 5, 5};
    set.object(1, 1, box);
    set.detection(1, 1, box, (i * 7919 % kObjects) / double{kObjects});
  }
  for (const auto iou : {IouType::box, IouType::mask}) {
    const auto result =
        evaluate(set.truth, set.found, {.iou = iou, .max_detections = {1, 10, kObjects}});
    EXPECT_EQ(result.stats[8], 1);  // AR at the last limit
  }
}

TEST(Evaluate, SkipsDistantBoxesOnly) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    // On a grid, so that many edges coincide and some widths and heights are 0.
    const auto box = [&] {
      return Rectangle{5.0 * (random() % 50), 5.0 * (random() % 10), 5.0 * (random() % 12),
                       5.0 * (random() % 12)};
    };
    ResultSet set(1, 1);
    for (int i = 0; i < 300; ++i) set.object(1, 1, box(), random() % 20 == 0);
    for (int i = 0; i < 300; ++i) set.detection(1, 1, box(), random() % 100 / 100.);
    set.detection(1, 1, {20, 0, std::numeric_limits<double>::infinity(), 50}, .7);
    EvaluateOptions options{.max_detections = {1, 100, 1000}};
    options.iou_thresholds = {.01, .5};
    const auto result = evaluate(set.truth, set.found, options);
    // The last threshold accepts overlaps of 0, so that all pairs are computed.
    options.iou_thresholds = {.01, .5, 0};
    const auto all = evaluate(set.truth, set.found, options);
    ASSERT_GT(result.stats[1], 0);
    EXPECT_THAT(std::span(all.precision).first(result.precision.size()),
                ElementsAreArray(result.precision));
    EXPECT_THAT(std::span(all.scores).first(result.scores.size()), ElementsAreArray(result.scores));
    EXPECT_THAT(std::span(all.recall).first(result.recall.size()), ElementsAreArray(result.recall));
  }
}

TEST(Evaluate, RejectsMissingLimitsAndMasks) {
  const Records set = row_of(1);
  EXPECT_THROW(evaluate(set, {}, {.max_detections = {}}), std::invalid_argument);
  EXPECT_THROW(evaluate(set, {}, {.max_detections = {0, 1}}), std::invalid_argument);
  const std::vector found = {on(set.annotations[0], .9)};
  EXPECT_THROW(evaluate(set, found, {.area = AreaFrom::mask}), Error);
}

TEST(Evaluate, AcceptsMasksWithoutBoxes) {
  ResultSet set = mixed_results(11);
  set.add_masks();
  for (auto& one : set.found) one.bbox.reset();
  for (const auto iou : {IouType::box, IouType::mask})
    expect_equal(evaluate(set.truth, set.found, {.iou = iou}),
                 evaluate(set.truth, set.found, {.iou = iou, .area = AreaFrom::mask}));
}

TEST(Evaluate, BreaksTiesByImage) {
  ResultSet set = mixed_results(5);
  for (auto& one : set.found) one.score = .5;
  const auto result = evaluate(set.truth, set.found, {});
  std::ranges::stable_sort(set.found, std::ranges::greater(), &Detection::image_id);
  expect_equal(evaluate(set.truth, set.found, {}), result);
}

TEST(Evaluate, IsIndependentOfThreadCount) {
  for (const bool joined : {false, true}) {
    const ResultSet set = mixed_results(3);
    const auto result = evaluate(set.truth, set.found, {.class_agnostic = joined, .threads = 1});
    for (const int threads : {2, 3, 8})
      expect_equal(evaluate(set.truth, set.found, {.class_agnostic = joined, .threads = threads}),
                   result);
  }
}

TEST(Evaluate, MatchesSubsetForChosenImages) {
  const ResultSet set = mixed_results(4);
  Records part = set.truth;
  std::erase_if(part.images, [](const Image& image) { return image.id > 2; });
  std::erase_if(part.annotations, [](const Annotation& one) { return one.image_id > 2; });
  const std::int64_t chosen[] = {2, 1, 1, 999};
  expect_equal(evaluate(*assemble(set.truth, "made"), Detections(set.found), {}, chosen),
               evaluate(part, set.found, {}));
}

}  // namespace
}  // namespace millrace::coco
