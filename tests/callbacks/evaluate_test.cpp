// All modes of evaluation during training lead to the same weights, scores and decisions, however
// long an evaluation takes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include "millrace/base/process/stop_signals.h"
#include "tests/callbacks/training.h"
#include "tests/support/log.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::vector<std::string> kModes = {"inline", "score_in_background", "background"};

/// Detects boxes that approach the objects as its weights grow. Calls `before_detecting` before
/// each batch.
class LearningDetector : public LineDetector {
 public:
  explicit LearningDetector(std::function<void()> before_detecting = [] {})
      : before_detecting_(std::move(before_detecting)) {}

  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    before_detecting_();
    const auto& weight = parameters().find("line.weight")->value;
    const auto off = 9 / (1 + std::abs(weight.sum().item<float>()));
    std::vector<std::vector<DetectedObject>> found;
    for (const auto& image : batch.images) {
      const auto shift = off * static_cast<float>(image.image_id % 3);
      found.push_back({{.box = {10 + shift, 10, 40 + shift, 40}, .label = 0, .score = 0.9F}});
    }
    return found;
  }

 private:
  std::function<void()> before_detecting_;
};

std::unique_ptr<Detector> quick_detector() { return std::make_unique<LearningDetector>(); }

/// Returns a slow detector: an evaluation takes longer than several steps, by a varying amount.
std::unique_ptr<Detector> slow_detector() {
  return std::make_unique<LearningDetector>([calls = 0]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(calls++ % 7));
  });
}

Declared declared(const std::string& mode, const std::string& more = "") {
  return {{"log", "every = '2 steps'"},
          {"checkpoint", "every = '3 steps'\nkeep = 1"},
          {"evaluate", "every = '1 epoch'\nmode = '" + mode + "'\n" + more},
          {"keep_best", "metric = 'bbox/AP'\nbetter = 'lower'"}};
}

Training training(const fs::path& folder, const std::string& mode, const std::string& more = "") {
  return {.folder = folder, .declared = declared(mode, more), .make_model = slow_detector};
}

/// Returns every metric except times, by name and step. Expects each to occur once.
std::map<std::pair<std::string, std::int64_t>, double> curves(const fs::path& run) {
  std::map<std::pair<std::string, std::int64_t>, double> points;
  for (const auto& line : metrics(run))
    for (const auto& [name, value] : line.items()) {
      if (name.starts_with("time") || name == "step" || name == "epoch") continue;
      const bool is_new = points.emplace(std::pair(name, line.at("step")), value).second;
      EXPECT_TRUE(is_new) << name << " of step " << line.at("step") << " occurs twice";
    }
  return points;
}

/// Returns the contents of all results files by name.
std::map<std::string, std::string> results(const fs::path& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(run / "detections"))
    files[entry.path().filename()] = read_file(entry.path());
  return files;
}

std::string latest(const fs::path& run, const std::string& name = "latest") {
  return read_file(run / "checkpoints" / name / "model.safetensors") +
         read_file(run / "checkpoints" / name / "optimizer.safetensors");
}

std::string failure_of(const Training& run) {
  return message_of([&] { run(); });
}

/// Proposes its detections and the whole image.
struct ProposingDetector final : LearningDetector {
  bool gives_notes() const override { return true; }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes* notes) override {
    auto found = LearningDetector::find_objects(batch, nullptr);
    if (notes) *notes = {found, found};
    for (std::size_t i = 0; notes && i < found.size(); ++i)
      notes->proposals[i].push_back({.box = {0, 0, 64, 64}, .score = 0.5F});
    return found;
  }
};

TEST(EvaluationLimit, IsReportedIfImagesExceedIt) {
  const Scratch scratch;
  auto truth = fake_truth();
  for (int k = 0; k < 150; ++k) {
    auto one = truth.annotations[0];
    one.id = 1000 + k;
    truth.add(one);
  }
  auto dense = fake_validation();
  dense.split = make_split(assemble(std::move(truth), "dense"), "nowhere", {});
  for (const auto* limit : {"", "max_detections = 200"}) {
    auto run = training(scratch / (limit[0] ? "more" : "usual"), "inline", limit);
    run.adjust = [&](TrainPlan& plan) { plan.validation = &dense; };
    Log log;
    run();
    EXPECT_EQ(log.take().find("warning 1 of 10 images") != std::string::npos, limit[0] == 0);
  }
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch / "usual" / "scores" / "step-000005.json"))
                .at("limit")
                .at("images_beyond"),
            1);
}

TEST(EvaluationLimit, MustBeAtLeast100) {
  EXPECT_THROW(made({{"evaluate", "max_detections = 50"}}), ConfigError);
}

TEST(EvaluationModes, ScoreProposalsOnRequest) {
  const Scratch scratch;
  for (const auto& mode : kModes) {
    auto run = training(scratch / mode, mode, "proposals = true");
    run.make_model = [] { return std::make_unique<ProposingDetector>(); };
    run();
  }
  const auto usual = curves(scratch / "inline");
  EXPECT_GT(usual.at({"proposals/AR@100", 10}), 0);
  EXPECT_EQ(usual.at({"proposals/AR@100", 10}), usual.at({"proposals/ARs@1000", 10}));
  for (const auto& mode : kModes) EXPECT_EQ(curves(scratch / mode), usual) << mode;
  EXPECT_THAT(failure_of(training(scratch / "none", "inline", "proposals = true")),
              HasSubstr("callbacks.evaluate.proposals: "));
}

TEST(EvaluationModes, ProduceSameResults) {
  const Scratch scratch;
  for (const auto& mode : kModes) training(scratch / mode, mode)();
  const auto usual = scratch / "inline";
  ASSERT_EQ(results(usual).size(), 3U);
  EXPECT_EQ(read_checkpoint(usual / "checkpoints" / "best").at.step, 5);
  EXPECT_LT(curves(usual).at({"bbox/AP", 5}), curves(usual).at({"bbox/AP", 10}));
  for (const auto& mode : kModes) {
    EXPECT_EQ(latest(scratch / mode), latest(usual)) << mode;
    EXPECT_EQ(latest(scratch / mode, "best"), latest(usual, "best")) << mode;
    EXPECT_EQ(curves(scratch / mode), curves(usual)) << mode;
    EXPECT_EQ(results(scratch / mode), results(usual)) << mode;
  }
}

TEST(EvaluationModes, PublishScoresBeforeNextEvaluation) {
  const Scratch scratch;
  for (const auto& mode : kModes) {
    // Pairs of the step at publication and the step of the evaluation.
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    auto run = training(scratch / mode, mode);
    run.make_model = quick_detector;
    run.on_published = [&](const TrainState& state, const Moment& of, const Scalars& scalars) {
      for (const auto& [name, value] : scalars)
        if (name == "bbox/AP") taken.emplace_back(state.at.step, of.step);
    };
    run();
    if (mode == "inline")
      EXPECT_THAT(taken, ElementsAre(Pair(5, 5), Pair(10, 10), Pair(15, 15)));
    else
      EXPECT_THAT(taken, ElementsAre(Pair(10, 5), Pair(15, 10), Pair(15, 15))) << mode;
  }
}

TEST(EvaluationModes, WriteSameFilesAtAnySpeed) {
  const Scratch scratch;
  for (const auto& mode : kModes) {
    training(scratch / (mode + "-slow"), mode)();
    auto quick = training(scratch / (mode + "-quick"), mode);
    quick.make_model = quick_detector;
    quick();
    EXPECT_EQ(deterministic_results(scratch / (mode + "-slow")),
              deterministic_results(scratch / (mode + "-quick")))
        << mode;
  }
}

TEST(EvaluationModes, RunOneEvaluationAtATime) {
  const Scratch scratch;
  static std::atomic<int> running, most, on_training_thread;
  static const auto training_thread = std::this_thread::get_id();
  running = most = on_training_thread = 0;
  auto run = training(scratch / "run", "background", "results = false");
  run.declared[2].second += "\nevery = '1 steps'";
  run.declared[2].second.erase(0, std::string("every = '1 epoch'\n").size());
  run.make_model = [] {
    return std::make_unique<LearningDetector>([] {
      most = std::max<int>(most, ++running);
      on_training_thread += std::this_thread::get_id() == training_thread;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --running;
    });
  };
  run();
  EXPECT_EQ(most, 1);
  // The last evaluation has 5 batches and runs on the training thread, after the last step.
  EXPECT_EQ(on_training_thread, 5);
  EXPECT_FALSE(fs::exists(scratch / "run" / "detections"));
}

TEST(EvaluationModes, ResumeAfterKill) {
  const Scratch scratch;
  for (const auto& mode : kModes) {
    const auto whole = scratch / mode;
    ASSERT_EQ(training(whole, mode).in_child(), 0);
    for (std::int64_t victim = 4; victim < 15; ++victim) {
      const auto folder = scratch / (mode + "-killed-" + std::to_string(victim));
      training(folder, mode).killed_after(victim);
      EXPECT_EQ(deterministic_results(folder), deterministic_results(whole))
          << mode << ", " << victim;
      EXPECT_EQ(latest(folder, "best"), latest(whole, "best")) << mode << ", " << victim;
      EXPECT_EQ(results(folder), results(whole)) << mode << ", " << victim;
    }
  }
}

TEST(EvaluationModes, ResumeAfterSignal) {
  const Scratch scratch;
  for (const auto& mode : kModes) {
    const auto whole = scratch / mode;
    training(whole, mode)();
    for (std::int64_t victim = 4; victim < 15; ++victim) {
      const auto folder = scratch / (mode + "-stopped-" + std::to_string(victim));
      auto stopped = training(folder, mode);
      if (victim % 2 == 0) stopped.make_model = quick_detector;
      stopped.before_step = [&](const TrainState& s) {
        if (s.at.step != victim) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // lets an evaluation finish
        std::raise(SIGTERM);
      };
      EXPECT_TRUE(stopped().signalled);
      training(folder, mode)();
      EXPECT_EQ(curves(folder), curves(whole)) << mode << " stopped in step " << victim + 1;
      EXPECT_EQ(deterministic_results(folder), deterministic_results(whole))
          << mode << ", " << victim;
      EXPECT_EQ(latest(folder, "best"), latest(whole, "best")) << mode << ", " << victim;
      EXPECT_EQ(results(folder), results(whole)) << mode << ", " << victim;
    }
  }
}

TEST(EvaluationModes, SkipEvaluationOfMissingCheckpoint) {
  const Scratch scratch;
  auto run = training(scratch / "run", "background");
  run.make_model = [] {
    return std::make_unique<LearningDetector>([] {
      while (StopSignals::received().empty())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  };
  run.before_step = [](const TrainState& s) {
    if (s.at.step == 7) std::raise(SIGTERM);
  };
  run();
  ASSERT_TRUE(fs::exists(scratch / "run" / "checkpoints" / "step-000005"));
  fs::remove_all(scratch / "run" / "checkpoints" / "step-000005");
  EXPECT_EQ(training(scratch / "run", "background")().at.step, 15);
  EXPECT_FALSE(curves(scratch / "run").contains({"bbox/AP", 5}));
  EXPECT_TRUE(curves(scratch / "run").contains({"bbox/AP", 10}));
}

TEST(EvaluationModes, ReportFailedEvaluation) {
  const Scratch scratch;
  for (const auto& mode : kModes) {
    auto run = training(scratch / mode, mode);
    run.make_model = [] {
      return std::make_unique<LearningDetector>([] { throw Error("no such layer"); });
    };
    EXPECT_THAT(failure_of(run),
                AllOf(HasSubstr("evaluation of step 5: "), HasSubstr("detect: no such layer")))
        << mode;
    EXPECT_FALSE(fs::exists(scratch / mode / "detections")) << mode;
  }
}

TEST(EvaluationModes, PublishLastScoresAfterFailure) {
  const Scratch scratch;
  auto run = training(scratch / "run", "background");
  run.before_step = [](const TrainState& s) {
    if (s.at.step == 7) throw Error("broke");
  };
  EXPECT_THAT(failure_of(run), HasSubstr("broke"));
  EXPECT_TRUE(curves(scratch / "run").contains({"bbox/AP", 5}));
  run.before_step = {};
  run();  // repeats the evaluation of step 5
  EXPECT_TRUE(curves(scratch / "run").contains({"bbox/AP", 5}));
}

TEST(EvaluationTargets, EndTrainingWithCheckpoint) {
  const Scratch scratch;
  training(scratch / "whole", "inline")();
  const auto aps = curves(scratch / "whole");
  const auto target = (aps.at({"bbox/AP", 5}) + aps.at({"bbox/AP", 10})) / 2;
  const auto targets = fmt::format("targets = {{ 'bbox/AP' = {}, 'bbox/AP50' = 0.01 }}", target);
  for (const auto& mode : kModes) {
    const auto folder = scratch / mode;
    const auto end = training(folder, mode, targets)();
    EXPECT_EQ(end.at.step, mode == "inline" ? 10 : 15) << mode;
    EXPECT_FALSE(end.signalled);
    EXPECT_THAT(end.stop_reason,
                AllOf(HasSubstr("bbox/AP 0."), HasSubstr("bbox/AP50 1.0000 of 0.01")));
    EXPECT_EQ(read_checkpoint(folder / "checkpoints" / "step-000010").at.step, 10) << mode;
    EXPECT_EQ(read_checkpoint(folder / "checkpoints" / "latest").at.step, end.at.step) << mode;
    EXPECT_EQ(training(folder, mode, targets)().at.step, end.at.step) << mode << " resumed";
  }
  const auto one_of_two = "targets = { 'bbox/AP50' = 0.01, 'bbox/AP' = 1 }";
  EXPECT_EQ(training(scratch / "one", "inline", one_of_two)().stop_reason, "");
}

TEST(EvaluationTargets, RejectUnknownScores) {
  const Scratch scratch;
  EXPECT_THAT(failure_of(training(scratch / "a", "inline", "targets = { 'bbox/AP60' = 0.5 }")),
              AllOf(HasSubstr("test.toml:3"), HasSubstr("targets"), HasSubstr("'bbox/AP60'"),
                    HasSubstr("'bbox/AP50'")));
  EXPECT_THAT(failure_of(training(scratch / "b", "background", "targets = { 'segm/AP' = 0.1 }")),
              AllOf(HasSubstr("callbacks.evaluate.targets: "), HasSubstr("segm/AP")));
}

/// A detector without masks.
struct BoxesAlone final : LearningDetector {
  bool gives_masks() const override { return false; }
};

TEST(EvaluateCallback, RejectsUnavailableScoresBeforeTraining) {
  const Scratch scratch;
  const auto of_boxes = [&](Training run) {
    run.make_model = [] { return std::make_unique<BoxesAlone>(); };
    run.before_step = [](const TrainState&) { FAIL() << "a step was taken"; };
    return failure_of(run);
  };
  EXPECT_THAT(of_boxes({.folder = scratch / "a",
                        .declared = {{"evaluate", ""}, {"keep_best", "metric = 'segm/AP'"}}}),
              AllOf(HasSubstr("callbacks.keep_best: 'segm/AP'"), HasSubstr("callback 'evaluate'"),
                    HasSubstr("bbox/AP, ")));
  EXPECT_THAT(of_boxes(training(scratch / "b", "inline", "targets = { 'segm/AP' = 0.1 }")),
              AllOf(HasSubstr("targets: 'segm/AP'"), HasSubstr("masks")));
  EXPECT_THAT(of_boxes(training(scratch / "c", "inline", "boundary = true")),
              HasSubstr("callbacks.evaluate.boundary: "));
  EXPECT_THAT(failure_of(training(scratch / "d", "inline", "targets = { 'bbox/APr' = 0.1 }")),
              AllOf(HasSubstr("targets: 'bbox/APr'"), HasSubstr("LVIS")));
}

/// Detects nothing, as many detectors do early in training.
struct BlindToBoxes final : LearningDetector {
  bool gives_masks() const override { return false; }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    return std::vector<std::vector<DetectedObject>>(batch.images.size());
  }
};

TEST(EvaluateCallback, ScoresNoMasksForBoxDetector) {
  const Scratch scratch;
  auto run = training(scratch / "run", "inline");
  run.make_model = [] { return std::make_unique<BlindToBoxes>(); };
  EXPECT_EQ(run().at.step, 15);
  BlindToBoxes model;
  EXPECT_FALSE(evaluate_detector(model, fake_validation())->masks);
}

TEST(EvaluateCallback, LogsWhichWeightsWereScored) {
  const Scratch scratch;
  Log log;
  Training{.folder = scratch / "run",
           .declared = {{"average_weights", "decay = 0.99"},
                        {"evaluate", "every = '1 epoch'"},
                        {"averaged", "type = 'evaluate'\nweights = 'average_weights'"}}}();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("info evaluation after step 15\n"
                              "            AP    AP50    AP75   small  medium   large\n"
                              "  box    0."));
  EXPECT_THAT(text, HasSubstr("info best box AP 0."));
  EXPECT_THAT(text, HasSubstr("info evaluation of average_weights after step 15\n"));
  EXPECT_THAT(text, HasSubstr("info best box AP of average_weights 0."));
}

TEST(EvaluateCallback, RejectsBackgroundWithoutSecondModel) {
  const Scratch scratch;
  auto run = training(scratch / "run", "background");
  run.adjust = [](TrainPlan& plan) { plan.make_model = nullptr; };
  EXPECT_THAT(failure_of(run), HasSubstr("make_model"));
}

TEST(EvaluateCallback, ScoresAndWritesDetections) {
  const Scratch scratch;
  Training{.folder = scratch / "run", .declared = {{"evaluate", ""}, {"log", ""}}}();
  const auto detections =
      coco::read_detections(scratch / "run" / "detections" / "step-000015.json");
  EXPECT_EQ(detections.size(), 10U);
  EXPECT_EQ(detections[0].category_id, 7);
  // Detected boxes are exact, or one or two pixels off: all match at IoU 0.5, some at 0.95.
  const auto last = metrics(scratch / "run").back();
  EXPECT_EQ(last.at("bbox/AP50"), 1.0);
  EXPECT_GT(last.at("bbox/AP"), 0.5);
  EXPECT_LT(last.at("bbox/AP"), 1.0);
  EXPECT_FALSE(last.contains("segm/AP"));
}

TEST(EvaluateCallback, DoesNothingWithoutValidationData) {
  const Scratch scratch;
  Training{.folder = scratch / "run",
           .declared = {{"evaluate", ""}, {"pictures", ""}},
           .adjust = [](TrainPlan& plan) { plan.validation = nullptr; }}();
  EXPECT_FALSE(fs::exists(scratch / "run" / "detections"));
}

}  // namespace
}  // namespace millrace::testing
