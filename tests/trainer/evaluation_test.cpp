// Scores of a detector on the validation split, computed at once and in parts.
#include "millrace/trainer/evaluation/detector_evaluation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "millrace/base/errors.h"
#include "millrace/trainer/evaluation/running_ap.h"
#include "tests/support/fake_training.h"
#include "tests/support/log.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Evaluation, IgnoresClassesNotRequested) {
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

/// Detects boxes that are 0, 9 or 18 pixels off: correct at all IoU thresholds, at 0.5 only, or
/// never.
struct OffDetector final : LineDetector {
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    std::vector<std::vector<DetectedObject>> found;
    for (const auto& image : batch.images) {
      const auto shift = 9 * static_cast<float>(image.image_id % 3);
      found.push_back({{.box = {10 + shift, 10, 40 + shift, 40}, .label = 0, .score = 0.9F}});
    }
    return found;
  }
};

TEST(Evaluation, UsesLvisRulesForFederatedSplit) {
  OffDetector model;
  auto data = fake_validation();
  const auto named = [&](bool negative) {
    auto truth = fake_truth();
    truth.add_category(9, "ring");
    truth.categories[0].frequency = 'c';
    for (std::size_t i = 0; i < 5; ++i) truth.annotations[i].category_id = 9;
    truth.images[7].negatives = 1;  // "star" is detected there without an object
    truth.category_lists = {negative ? 7 : 9};
    std::erase_if(truth.annotations, [](const auto& one) { return one.image_id == 8; });
    data.split = make_split(assemble(std::move(truth), "fake"), "nowhere", {"star"});
    return *evaluate_detector(model, data);
  };
  const auto without = named(false), with = named(true);
  EXPECT_TRUE(with.boxes.federated);
  EXPECT_EQ(named_scores(with)[7].first, "bbox/APc");
  EXPECT_EQ(named_scores(with)[7].second, named_scores(with)[0].second);
  std::vector<std::string> names;
  for (const auto& [name, value] : named_scores(with)) names.push_back(name);
  EXPECT_THAT(score_names(/*federated=*/true), ::testing::IsSupersetOf(names));
  EXPECT_THAT(score_tables(with), HasSubstr("catIds=  c"));
  // A class is evaluated on images that list it as absent, but not on images that do not mention
  // it.
  EXPECT_LT(with.boxes.stats[0], without.boxes.stats[0]);
}

/// Detects the 150 objects of every image of `dense_validation`.
struct GridDetector final : LineDetector {
  static constexpr int kObjects = 150;
  static Box box(int k) {
    const auto x = static_cast<float>(4 * (k % 15)), y = static_cast<float>(6 * (k / 15));
    return {x, y, x + 3, y + 5};
  }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    std::vector<DetectedObject> all;
    for (int k = 0; k < kObjects; ++k) all.push_back({.box = box(k), .label = 0, .score = 0.9F});
    return std::vector(batch.size(), all);
  }
};

EvalData dense_validation() {
  coco::Records truth;
  truth.add_category(7, "star");
  for (std::int64_t id = 1; id <= kEpochImages; ++id) {
    truth.add_image(id, "", 64, 64);
    for (int k = 0; k < GridDetector::kObjects; ++k) {
      const auto box = GridDetector::box(k);
      truth.add({.id = id * 1000 + k,
                 .image_id = id,
                 .category_id = 7,
                 .bbox = {box.x1, box.y1, box.width(), box.height()},
                 .area = box.area()});
    }
  }
  auto data = fake_validation();
  data.split = make_split(assemble(std::move(truth), "dense"), "nowhere", {});
  return data;
}

TEST(Evaluation, RespectsMaxDetections) {
  GridDetector model;
  const auto usual = *evaluate_detector(model, dense_validation());
  EXPECT_NEAR(usual.boxes.stats[0], 67. / 101, 1e-9);
  EXPECT_EQ(usual.limit.images_over_limit, static_cast<std::size_t>(kEpochImages));
  EXPECT_EQ(usual.limit.best_ap, usual.boxes.stats[0]);
  const auto all =
      *evaluate_detector(model, dense_validation(), {.max_detections = GridDetector::kObjects});
  EXPECT_NEAR(all.boxes.stats[0], 1, 1e-9);
  EXPECT_EQ(all.limit.images_over_limit, 0U);
  EXPECT_EQ(evaluate_detector(model, dense_validation(), {.max_images = 4})->limit.images, 4U);
}

TEST(Evaluation, ReportsIntermediateBoxResults) {
  OffDetector model;
  std::vector<std::size_t> images;
  const auto scores = evaluate_detector(
      model, fake_validation(),
      {.so_far = [&](const coco::Evaluator& boxes) { images.push_back(boxes.images()); }});
  EXPECT_EQ(images, (std::vector<std::size_t>{2, 4, 6, 8, 10}));
  EXPECT_EQ(scores->boxes.stats, evaluate_detector(model, fake_validation())->boxes.stats);
}

TEST(Evaluation, LogsRunningApAtEachTenth) {
  const auto truth = fake_validation().split.annotations;
  coco::Evaluator boxes(truth, {});
  Log log;
  RunningApLog say(kEpochImages, /*pause_s=*/0), silent(kEpochImages, /*pause_s=*/1e6);
  for (std::int64_t id = 1; id <= kEpochImages; ++id) {
    boxes.add(id, std::vector<coco::Detection>{{id, 7, coco::Xywh{10, 10, 30, 30}, .9, {}}});
    silent(boxes);
    EXPECT_EQ(log.take(), "");
    say(boxes);
    say(boxes);
    const auto said = log.take();
    EXPECT_LE(std::ranges::count(said, '\n'), 1);
    if (id == 1) {
      EXPECT_EQ(said, "info 1 of 10 images, box AP 1.000 (1.000 .. 1.000)\n");
    }
    if (id == kEpochImages) {
      EXPECT_EQ(said, "") << "the final metrics follow";
    }
  }
}

TEST(Evaluation, StopsWhenCancelled) {
  LineDetector model;
  EXPECT_FALSE(
      evaluate_detector(model, fake_validation(), {.watch = {.cancelled = [] { return true; }}}));
}

/// Evaluates the positions [first, end) of the fake flow.
EvaluationPart part(std::int64_t first, std::int64_t end) {
  DetectorEvaluation evaluation(fake_validation().split, {});
  OffDetector model;
  EXPECT_TRUE(evaluation.detect(model, std::make_unique<FakeFlow>(kEpochImages, first, end)));
  return evaluation.part();
}

TEST(Evaluation, MatchesOneProcessIfSharded) {
  OffDetector model;
  const auto whole = evaluate_detector(model, fake_validation());
  std::array<EvaluationPart, 3> parts;
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

TEST(Evaluation, RejectsRepeatedImages) {
  DetectorEvaluation evaluation(fake_validation().split, {});
  OffDetector model;
  const auto flow = [](std::int64_t first, std::int64_t end) {
    return std::make_unique<FakeFlow>(kEpochImages, first, end);
  };
  EXPECT_TRUE(evaluation.detect(model, flow(0, 10)));
  EXPECT_THAT([&] { evaluation.detect(model, flow(10, 12)); },
              ThrowsMessage<Error>(HasSubstr("added")));
  EXPECT_THAT([&] { evaluation.merge(part(4, 6)); },
              ThrowsMessage<Error>(HasSubstr("two partial")));
}

TEST(Evaluation, RejectsBrokenParts) {
  for (const auto field :
       {&EvaluationPart::box_matches, &EvaluationPart::mask_matches, &EvaluationPart::detections}) {
    const auto good = part(0, 4).*field;
    for (const std::string& bad : std::vector<std::string>{
             "", good.substr(0, good.size() / 2), good.substr(0, good.size() - 1), "x" + good}) {
      auto broken = part(0, 4);
      broken.*field = bad;
      DetectorEvaluation evaluation(fake_validation().split, {});
      EXPECT_THAT([&] { evaluation.merge(broken); }, ThrowsMessage<Error>(HasSubstr("partial")));
    }
  }
}

TEST(Evaluation, CountsUnreadableImagesAsUndetected) {
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

/// Detects masks that fill their boxes.
struct MaskedDetector final : LineDetector {
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    auto found = OffDetector().detect(batch);
    for (auto& image : found)
      for (auto& [box, label, score, mask] : image)
        mask = coco::from_polygons(std::vector<coco::Polygon>{{box.x1, box.y1, box.x2, box.y1,
                                                               box.x2, box.y2, box.x1, box.y2}},
                                   64, 64);
    return found;
  }
};

TEST(Evaluation, ComputesBoundaryApOnRequest) {
  MaskedDetector model;
  auto data = fake_validation();
  auto truth = fake_truth();
  for (auto& one : truth.annotations)
    one.shape = truth.add_mask(
        coco::from_polygons(std::vector<coco::Polygon>{{10, 10, 40, 10, 40, 40, 10, 40}}, 64, 64));
  data.split = make_split(assemble(std::move(truth), "fake"), "nowhere", {});
  const EvaluationRun run{.boundary = true};
  const auto whole = evaluate_detector(model, data, run);
  ASSERT_TRUE(whole->masks && whole->boundaries);
  EXPECT_GT(whole->boundaries->stats[0], 0);
  EXPECT_LT(whole->boundaries->stats[0], whole->masks->stats[0]);
  EXPECT_EQ(named_scores(*whole)[24].first, boundary_score_names(false)[0]);
  EXPECT_THAT(score_summary(named_scores(*whole)), HasSubstr("boundary  "));
  EXPECT_THAT(score_tables(*whole), HasSubstr("*boundary*"));
  DetectorEvaluation first(data.split, run), second(data.split, run);
  EXPECT_TRUE(first.detect(model, data.start({0, 2})));
  EXPECT_TRUE(second.detect(model, data.start({1, 2})));
  first.merge(second.part());
  EXPECT_EQ(first.scores().boundaries->stats, whole->boundaries->stats);
  EXPECT_FALSE(evaluate_detector(model, data)->boundaries);
}

TEST(Evaluation, RejectsMasksForOnlySomeObjects) {
  struct Half final : LineDetector {
    std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                          DetectionNotes*) override {
      auto found = LineDetector::find_objects(batch, nullptr);
      found[0][0].mask = {.height = 64, .width = 64, .counts = {0, 64 * 64}};
      return found;
    }
  } model;
  EXPECT_THAT([&] { evaluate_detector(model, fake_validation()); },
              ThrowsMessage<Error>(HasSubstr("masks for 5 of 10 objects")));
}

/// Generated objects of two classes in ten images, with proposals near them and elsewhere.
class Proposals : public ::testing::Test {
 protected:
  Proposals() {
    truth_.add_category(7, "star");
    truth_.add_category(9, "ring");
    for (std::int64_t id = 1; id <= kEpochImages; ++id) {
      truth_.add_image(id, "", 640, 640);
      for (int i = 0; i < 6; ++i) {
        const auto box = made_up();
        coco::Annotation object{.id = 10 * id + i, .image_id = id, .category_id = i % 2 ? 7 : 9};
        object.bbox[0] = box.x1, object.bbox[1] = box.y1;
        object.bbox[2] = box.width(), object.bbox[3] = box.height();
        object.area = object.bbox[2] * object.bbox[3];
        object.crowd = i == 5;
        truth_.add(object);
        for (int n = 0; n < 4; ++n) model_.proposals[id].push_back({.box = moved(box)});
      }
      while (model_.proposals[id].size() < 1100) model_.proposals[id].push_back({.box = made_up()});
      auto& own = model_.proposals[id];
      for (std::size_t i = 0; i < own.size(); ++i) {
        std::swap(own[i], own[i + rng_.below(own.size() - i)]);
        own[i].score = static_cast<float>(own.size() - i) / static_cast<float>(own.size());
      }
    }
    data_.split = make_split(assemble(truth_, "made up"), "nowhere", {});
  }

  /// Returns a random multiple of a quarter pixel, which float represents exactly.
  float quarters(std::uint64_t most) { return static_cast<float>(1 + rng_.below(4 * most)) / 4; }
  Box made_up() {
    const auto x = quarters(400), y = quarters(400);
    return {x, y, x + quarters(200), y + quarters(200)};
  }
  Box moved(const Box& box) {
    return {box.x1, box.y1, box.x2 + quarters(20), box.y2 + quarters(20)};
  }

  struct Proposer final : LineDetector {
    bool gives_notes() const override { return true; }
    std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                          DetectionNotes* notes) override {
      if (notes) {
        for (const auto& image : batch.images)
          notes->proposals.push_back(proposals.at(image.image_id));
        notes->raw.resize(batch.size());
      }
      return LineDetector::find_objects(batch, nullptr);
    }
    std::map<std::int64_t, std::vector<DetectedObject>> proposals;
  };

  Rng rng_{5};
  coco::Records truth_;
  Proposer model_;
  EvalData data_ = fake_validation();
};

TEST_F(Proposals, MatchPycocotoolsOverAllClasses) {
  MILLRACE_NEEDS_PYTHON("pycocotools");
  using nlohmann::json;
  json gt, dt;
  for (const int id : {7, 9}) gt["categories"].push_back({{"id", id}, {"name", "c"}});
  for (std::int64_t id = 1; id <= kEpochImages; ++id) {
    gt["images"].push_back({{"id", id}, {"width", 640}, {"height", 640}});
    for (const auto& one : model_.proposals[id])
      dt.push_back({{"image_id", id},
                    {"category_id", 7},
                    {"score", static_cast<double>(one.score)},
                    {"bbox", {one.box.x1, one.box.y1, one.box.width(), one.box.height()}}});
  }
  for (const auto& one : truth_.annotations)
    gt["annotations"].push_back({{"id", one.id},
                                 {"image_id", one.image_id},
                                 {"category_id", one.category_id},
                                 {"bbox", one.bbox},
                                 {"area", one.area},
                                 {"iscrowd", static_cast<int>(one.crowd)}});
  const Scratch scratch;
  const json cases = {{{"gt", scratch.file("gt.json", gt.dump()).string()},
                       {"dt", scratch.file("dt.json", dt.dump()).string()},
                       {"iou", "bbox"},
                       {"use_cats", 0},
                       {"max_dets", {100, 300, 1000}}}};
  const auto in = scratch.file("in.json", cases.dump()), out = scratch / "out.json";
  ASSERT_EQ(
      run_python("tests/coco/pycocotools_answers.py '" + in.string() + "' '" + out.string() + "'"),
      0);
  const auto stats = json::parse(std::ifstream(out)).at(0).at("stats").get<std::vector<double>>();

  const auto scores = evaluate_detector(model_, data_, {.proposals = true});
  const auto recalls = proposal_recalls(*scores);
  ASSERT_EQ(recalls.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(recalls[i].second, stats[6 + i]) << recalls[i].first;
  EXPECT_LT(recalls[0].second, recalls[1].second);
  EXPECT_LT(recalls[1].second, recalls[2].second);
  EXPECT_EQ(named_scores(*scores).back().first, "proposals/ARl@1000");
  EXPECT_THAT(score_tables(*scores), HasSubstr("maxDets=300"));
}

TEST_F(Proposals, HaveSameRecallIfMerged) {
  const auto whole = evaluate_detector(model_, data_, {.proposals = true});
  DetectorEvaluation first(data_.split, {.proposals = true}),
      second(data_.split, {.proposals = true});
  EXPECT_TRUE(first.detect(model_, data_.start({0, 2})));
  EXPECT_TRUE(second.detect(model_, data_.start({1, 2})));
  first.merge(second.part());
  EXPECT_EQ(proposal_recalls(first.scores()), proposal_recalls(*whole));
  EXPECT_TRUE(proposal_recalls(*evaluate_detector(model_, data_)).empty());
  LineDetector without;
  EXPECT_THAT([&] { evaluate_detector(without, data_, {.proposals = true}); },
              ThrowsMessage<Error>(HasSubstr("proposals")));
}

}  // namespace
}  // namespace millrace::testing
