// The evaluator matches, bit for bit, results of pycocotools and lvis for unusual parameters, which
// record_peers.py has recorded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>

#include <bit>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/details.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Computes the same digest as record_peers.py.
std::string digest_of(const std::vector<double>& values) {
  std::uint64_t sum = 0, odd = 1;
  for (const double value : values) sum += std::bit_cast<std::uint64_t>(value) * odd, odd += 2;
  return fmt::format("{:016x}", sum);
}

const json& recorded() {
  static const json all = json::parse(std::ifstream("tests/coco/fixture/peers.json"));
  return all;
}

/// Returns the detections of a set without the fields that the case omits.
Detections found_of(const json& set, const json& one) {
  const auto without = one.value("without", std::vector<std::string>());
  const auto has = [&](const char* field) { return std::ranges::count(without, field) == 0; };
  Detections found;
  for (const json& given : set["dt"]) {
    Detections::Record record;
    record.image_id = given["image_id"];
    record.category_id = given["category_id"];
    record.score = given["score"].is_null() ? std::numeric_limits<double>::quiet_NaN()
                                            : given["score"].get<double>();
    record.has_bbox = has("bbox");
    if (record.has_bbox) record.bbox = given["bbox"];
    if (has("segmentation")) {
      const json& mask = given["segmentation"];
      found.add(record, mask["counts"].get<std::string>(), mask["size"][0], mask["size"][1],
                given["keypoints"].get<std::vector<double>>());
    } else {
      found.add(record, given["keypoints"].get<std::vector<double>>());
    }
  }
  return found;
}

EvaluateOptions options_of(const json& one, const Detections& found) {
  const IouType iou = one["iou"] == "bbox"   ? IouType::box
                      : one["iou"] == "segm" ? IouType::mask
                                             : IouType::keypoints;
  EvaluateOptions options = one["peer"] == "lvis" ? lvis_options(iou) : usual_options(iou);
  options.area = area_from(found);
  options.class_agnostic = one.value("use_cats", 1) == 0;
  const auto take = [&](const char* name, auto& to) {
    if (one.contains(name)) one[name].get_to(to);
  };
  take("max_dets", options.max_detections);
  take("iou_thrs", options.iou_thresholds);
  take("rec_thrs", options.recall_thresholds);
  take("cat_ids", options.category_ids);
  take("sigmas", options.sigmas);
  if (one.contains("area_rng")) {
    options.area_ranges.clear();
    for (std::size_t a = 0; a < one["area_rng"].size(); ++a)
      options.area_ranges.push_back(
          {one["area_lbl"][a], one["area_rng"][a][0], one["area_rng"][a][1]});
  }
  return options;
}

/// Returns the values of pycocotools' evalImgs and ious in the order of record_peers.py.
std::vector<double> listed(const MatchDetails& all, const Dataset& truth,
                           const EvaluateOptions& options) {
  const std::size_t areas = options.area_ranges.size(), levels = options.iou_thresholds.size();
  std::vector<double> out;
  for (const auto& cell : all.cells) {
    const std::size_t d0 = cell.first_detection, g0 = cell.first_object, d_count = cell.detections,
                      g_count = cell.objects;
    const auto object_id = [&](std::size_t g) {
      return static_cast<double>(truth.annotations[all.objects[g0 + g]].id);
    };
    const auto detection_id = [&](std::size_t d) { return all.detections[d0 + d] + 1.; };
    for (std::size_t a = 0; a < areas; ++a) {
      const std::size_t order = areas * g0 + a * g_count;
      for (std::size_t d = 0; d < d_count; ++d) out.push_back(detection_id(d));
      for (std::size_t d = 0; d < d_count; ++d) out.push_back(all.scores[d0 + d]);
      for (std::size_t g = 0; g < g_count; ++g)
        out.push_back(object_id(all.object_order[order + g]));
      for (std::size_t g = 0; g < g_count; ++g) out.push_back(all.object_ignored[order + g]);
      const std::size_t of_detections = areas * levels * d0 + a * levels * d_count,
                        of_objects = areas * levels * g0 + a * levels * g_count;
      for (std::size_t i = 0; i < levels * d_count; ++i) {
        const std::int32_t g = all.detection_matches[of_detections + i];
        out.push_back(g < 0 ? 0 : object_id(static_cast<std::size_t>(g)));
      }
      for (std::size_t i = 0; i < levels * g_count; ++i) {
        const std::int32_t d = all.object_matches[of_objects + i];
        out.push_back(d < 0 ? 0 : detection_id(static_cast<std::size_t>(d)));
      }
      for (std::size_t i = 0; i < levels * d_count; ++i)
        out.push_back(all.detection_ignored[of_detections + i]);
    }
    for (std::size_t i = 0; i < d_count * g_count; ++i)
      out.push_back(all.overlaps[cell.first_overlap + i]);
  }
  return out;
}

TEST(Peers, MatchExactly) {
  EXPECT_GT(recorded()["cases"].size(), 80U);
  for (const json& one : recorded()["cases"]) {
    json shown = one;
    shown.erase("answer");
    SCOPED_TRACE(shown.dump());
    const json& set = recorded()["sets"][one["set"].get<std::size_t>()];
    const json& answer = one["answer"];
    const auto truth = parse_dataset(set["gt"].dump(), "made");
    const Detections found = found_of(set, one);
    const EvaluateOptions options = options_of(one, found);
    const auto images = one.value("img_ids", std::vector<std::int64_t>());

    const Evaluation result = evaluate(*truth, found, options, images);
    EXPECT_EQ(digest_of(result.recall), answer["recall"]);
    EXPECT_EQ(digest_of(result.precision), answer["precision"]);
    if (answer.contains("scores")) {
      EXPECT_EQ(digest_of(result.scores), answer["scores"]);
    }
    if (answer.contains("stats")) {
      EXPECT_EQ(result.stats, answer["stats"].get<std::vector<double>>());
    }

    const MatchDetails details = DetailedMatcher(*truth, found, options).images(images);
    if (answer.contains("details")) {
      const auto list = listed(details, *truth, options);
      EXPECT_EQ(list.size(), answer["detail_count"]);
      EXPECT_EQ(digest_of(list), answer["details"]);
    }
  }
}

const json& first_of(const std::string& peer, const std::string& iou) {
  for (const json& one : recorded()["cases"])
    if (one["peer"] == peer && one["iou"] == iou) return one;
  throw std::invalid_argument(peer + ": no case");
}

TEST(Peers, RejectMismatchOfKeypointsAndSigmas) {
  const json& one = first_of("pycocotools", "keypoints");
  const json& set = recorded()["sets"][0];
  const auto truth = parse_dataset(set["gt"].dump(), "made");
  const Detections found = found_of(set, one);
  EvaluateOptions options = usual_options(IouType::keypoints);
  const auto told = [&] {
    try {
      evaluate(*truth, found, options);
    } catch (const std::exception& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  options.sigmas = {.1, .1};
  EXPECT_THAT(told(), AllOf(HasSubstr("17 keypoints"), HasSubstr("2 sigmas")));
  options.sigmas = {.1, 0};
  EXPECT_THAT(told(), HasSubstr("sigmas: "));
  options = usual_options(IouType::keypoints);
  options.area = AreaFrom::keypoints;
  std::vector<Detection> boxes = {{10, 7, Xywh{1, 1, 9, 9}, .5, {}}};
  EXPECT_THAT(testing::message_of([&] { evaluate(*truth, Detections(boxes), options); }),
              AllOf(HasSubstr("detection 0 (image 10) "), HasSubstr("keypoints")));
}

TEST(Peers, NameMetricsOfLvisAndKeypoints) {
  const json& set = recorded()["sets"][0];
  const auto truth = parse_dataset(set["gt"].dump(), "made");
  const Detections found = found_of(set, json::object());
  const auto lvis = evaluate(*truth, found, lvis_options(IouType::box));
  EXPECT_THAT(lvis.stat_names,
              ::testing::ElementsAre("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf",
                                     "AR@300", "ARs@300", "ARm@300", "ARl@300"));
  EXPECT_THAT(table(lvis, IouType::box),
              HasSubstr("(AP) @[ IoU=0.50:0.95 | area=   all | maxDets=300 catIds=  r] = "));
  const auto poses = evaluate(*truth, found, usual_options(IouType::keypoints));
  EXPECT_THAT(poses.stat_names, ::testing::ElementsAre("AP", "AP50", "AP75", "APm", "APl", "AR",
                                                       "AR50", "AR75", "ARm", "ARl"));
  EXPECT_THAT(table(poses, IouType::keypoints),
              HasSubstr("(AR) @[ IoU=0.75      | area=   all | maxDets= 20 ] = "));
}

TEST(Peers, RejectInvalidOptions) {
  const auto truth = parse_dataset(recorded()["sets"][0]["gt"].dump(), "made");
  const auto told = [&](const auto& change) {
    EvaluateOptions options;
    change(options);
    try {
      evaluate(*truth, {}, options);
    } catch (const std::invalid_argument& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(told([](EvaluateOptions&) {}), "");
  EXPECT_THAT(told([&](auto& o) { o.iou_thresholds = {.5, nan}; }), HasSubstr("iou_thresholds"));
  EXPECT_THAT(told([](auto& o) { o.recall_thresholds.clear(); }), HasSubstr("recall_thresholds"));
  EXPECT_THAT(told([](auto& o) { o.area_ranges.clear(); }), HasSubstr("area_ranges"));
  EXPECT_THAT(told([](auto& o) { o.category_ids = {7, 2, 7}; }), HasSubstr("category_ids: 7 "));
  EXPECT_THAT(told([](auto& o) { o.federated = true; }), HasSubstr("federated"));
}

TEST(Peers, MatchIfImagesAreAddedSeparately) {
  for (const char* iou : {"keypoints", "bbox"}) {
    const json& one = first_of(iou == std::string("bbox") ? "lvis" : "pycocotools", iou);
    const json& set = recorded()["sets"][one["set"].get<std::size_t>()];
    const std::shared_ptr<const Dataset> truth = parse_dataset(set["gt"].dump(), "made");
    const Detections found = found_of(set, one);
    EvaluateOptions options = options_of(one, found);
    options.iou_thresholds.assign(40, .5);  // more thresholds than a word has bits
    Evaluator here(truth, options), there(truth, options);
    for (const Image& image : truth->images) {
      std::vector<Detection> its;
      for (std::size_t i = 0; i < found.size(); ++i)
        if (found[i].image_id == image.id) {
          const auto keypoints = found.keypoints_of(found[i]);
          its.push_back({image.id,
                         found[i].category_id,
                         found[i].bbox,
                         found[i].score,
                         {},
                         {keypoints.begin(), keypoints.end()}});
        }
      (image.id % 2 ? here : there).add(image.id, its);
    }
    here.merge(there.partial());
    const Evaluation whole = evaluate(*truth, found, options), merged = here.result();
    EXPECT_EQ(merged.stats, whole.stats);
    EXPECT_EQ(digest_of(merged.precision), digest_of(whole.precision));
    EXPECT_EQ(digest_of(merged.scores), digest_of(whole.scores));
    EXPECT_GT(whole.stats[1], 0);
    options.sigmas.back() *= 2, options.recall_thresholds.back() = .9;
    EXPECT_THROW(Evaluator(truth, options).merge(here.partial()), Error);
  }
}

}  // namespace
}  // namespace millrace::coco
