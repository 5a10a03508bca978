// Runs on every rank. Tests decisions at step boundaries and evaluations by all ranks together.
#include <gmock/gmock.h>

#include <csignal>
#include <set>
#include <thread>

#include "millrace/base/process/stop_signals.h"
#include "millrace/trainer/cluster/step_agreement.h"
#include "tests/callbacks/training.h"
#include "tests/support/ranks_main.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool is_last_rank() { return cluster->rank() == cluster->size() - 1; }

/// Gathers one string from each rank, in rank order.
std::vector<std::string> of_all(const std::string& mine) { return cluster->gather("of all", mine); }

/// Expects equal strings on all ranks.
void expect_same(const std::string& mine) { EXPECT_THAT(of_all(mine), Each(mine)); }

/// Returns a training run on all ranks. Only rank 0 uses `folder`; the other ranks use a different
/// folder.
Training training(const fs::path& folder, const Declared& declared = kDefaultCallbacks) {
  auto theirs = folder.parent_path() / "elsewhere";
  return {
      .folder = cluster->is_chief() ? folder : theirs, .declared = declared, .cluster = cluster};
}

/// The functions of a LambdaCallback.
struct Hooks {
  bool on_all_ranks = false;
  std::function<void(const TrainState&)> before_step = {}, after_step = {}, after_train = {},
                                         trigger = {};
  std::function<void(const TrainState&, const Moment&, const Scalars&)> on_published = {};
};

/// Adds a callback with these functions to a training run.
void add(Training& training, const Hooks& hooks, std::optional<When> when = std::nullopt) {
  training.add = [=, before = training.add](CallbackList& list) {
    if (before) before(list);
    auto callback = std::make_unique<LambdaCallback>();
    callback->on_all_ranks = hooks.on_all_ranks;
    callback->on_before_step = hooks.before_step;
    callback->on_after_step = hooks.after_step;
    callback->on_after_train = hooks.after_train;
    callback->on_trigger = hooks.trigger;
    callback->on_published = hooks.on_published;
    list.add(fmt::format("hooks {}", before ? 2 : 1), std::move(callback), when);
  };
}

std::string text(const TrainEnd& end) {
  return fmt::format("{} {} {} {}", end.at.step, end.at.images, end.stop_reason, end.signalled);
}

TEST(Ranks, StopTogetherIfAnyRankStops) {
  const Scratch scratch;
  auto run = training(scratch / "run");
  add(run, {.on_all_ranks = true, .after_step = [](const TrainState& state) {
              if (is_last_rank() && state.at.step == 4) state.stop("tired");
            }});
  const auto end = run();
  expect_same(text(end));
  EXPECT_EQ(end.at.step, 4);
  EXPECT_EQ(end.at.images, 4 * 2 * cluster->size());
  EXPECT_THAT(end.stop_reason, HasSubstr("tired"));
  if (cluster->size() > 1) {
    EXPECT_THAT(end.stop_reason, HasSubstr(" of rank "));
  }
}

TEST(Ranks, StopTogetherIfRank0Stops) {
  const Scratch scratch;
  auto run = training(scratch / "run");
  add(run, {.on_published = [](const TrainState& state, const Moment&, const Scalars&) {
        if (state.at.step == 4) state.stop("seen enough");
      }});
  const auto end = run();
  expect_same(text(end));
  EXPECT_EQ(end.at.step, 4);
  EXPECT_EQ(end.stop_reason, "seen enough");
}

TEST(Ranks, StopAndSaveAfterSignal) {
  const Scratch scratch;
  for (const bool while_data_are_late : {false, true}) {
    auto run = training(scratch / (while_data_are_late ? "late" : "run"));
    add(run, {.on_all_ranks = true, .before_step = [=](const TrainState& state) {
                if (is_last_rank() && state.at.step == 4) std::raise(SIGTERM);
              }});
    struct Late final : FakeFlow {
      using FakeFlow::FakeFlow;
      bool is_ready(std::chrono::milliseconds) override {
        return !is_last_rank() || StopSignals::received().empty();
      }
    };
    if (while_data_are_late)
      run.adjust = [](TrainPlan& plan) {
        plan.start_data = [](const Cursor& start) {
          return std::make_unique<Late>(kEpochImages, start.next, 1 << 30);
        };
      };
    const auto end = run();
    expect_same(text(end));
    EXPECT_TRUE(end.signalled);
    EXPECT_EQ(end.at.step, while_data_are_late ? 4 : 5);
    EXPECT_THAT(end.stop_reason, HasSubstr("SIGTERM"));
    if (cluster->is_chief()) {
      EXPECT_EQ(newest_checkpoint(run.folder / "checkpoints")->at.step, end.at.step);
    }
  }
}

TEST(Ranks, UseHyperParametersOfRank0) {
  const Scratch scratch;
  auto run = training(scratch / "run");
  std::vector<double> rates;
  add(run, {.after_step = [](const TrainState& state) {
        state.hyper.set("lr_factor", state.at.step % 3, "test");
      }});
  add(run, {.on_all_ranks = true,
            .after_step = [&](const TrainState& state) { rates.push_back(state.lr); }});
  run();
  ASSERT_EQ(rates.size(), 15U);
  EXPECT_EQ(rates[3], 0);
  EXPECT_GT(rates[4], 0);
  expect_same(fmt::format("{}", fmt::join(rates, " ")));
}

TEST(Ranks, TriggerCallbacksTogether) {
  const Scratch scratch;
  const auto every_so_often = When(Every(parse_period("0.002 seconds")));
  const auto when_known = When(Every(parse_period("1 step")), Condition("known > 0"));
  for (const auto& when : {every_so_often, when_known}) {
    auto run = training(scratch / "run", {});
    std::vector<std::int64_t> steps;
    add(run,
        {.on_all_ranks = true,
         .before_step =
             [](const TrainState&) {
               if (is_last_rank()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
             },
         .trigger =
             [&](const TrainState& state) {
               steps.push_back(state.at.step);
               state.cluster->meet("a trigger");
             }},
        when);
    add(run, {.after_step = [](const TrainState& state) {
          state.publish({{"known", state.at.step > 6 ? 1 : 0}});
        }});
    run();
    EXPECT_FALSE(steps.empty());
    expect_same(fmt::format("{}", fmt::join(steps, " ")));
  }
}

TEST(Ranks, SaveCheckpointIfAnyRankRequests) {
  const Scratch scratch;
  auto run = training(scratch / "run", {});
  add(run, {.on_all_ranks = true, .after_step = [](const TrainState& state) {
              if (is_last_rank() && state.at.step == 7) state.save_checkpoint();
            }});
  run();
  const auto saved = newest_checkpoint_of(run.folder, *cluster);
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->at.step, 7);
  if (!cluster->is_chief()) {
    EXPECT_FALSE(fs::exists(run.folder / "checkpoints"));
  }
}

TEST(Ranks, RecordImagesOfAllRanks) {
  const Scratch scratch;
  auto run = training(scratch / "run", {{"ledger", ""}});
  std::string taken;
  add(run, {.on_all_ranks = true, .after_step = [&](const TrainState& state) {
              ASSERT_EQ(std::ssize(state.images), cluster->size());
              for (const auto& batch : state.images)
                taken += fmt::format("[{}]", fmt::join(batch, ","));
            }});
  run();
  expect_same(taken);
  EXPECT_EQ(fs::exists(run.folder / "ledger.jsonl"), cluster->is_chief());
  if (!cluster->is_chief()) return;
  std::string written;
  for (const auto& line : json_lines(run.folder / "ledger.jsonl"))
    for (const auto& batch : line.at("images")) written += batch.dump();
  EXPECT_EQ(written, taken);
}

TEST(Ranks, ComputeFiguresIfAnyRankRequests) {
  const Scratch scratch;
  auto run = training(scratch / "run", {});
  std::vector<std::int64_t> steps;
  add(run, {.on_all_ranks = true,
            .before_step =
                [](const TrainState& state) {
                  if (is_last_rank() && state.at.step == 7) state.request_metrics();
                },
            .after_step =
                [&](const TrainState& state) {
                  for (const auto& [name, value, kind] : state.scalars)
                    if (name == "line/error") steps.push_back(state.at.step);
                }});
  run();
  EXPECT_THAT(steps, ElementsAre(8));
}

TEST(Ranks, ResumeFromCheckpointOfRank0) {
  const Scratch scratch;
  const Declared declared = {{"checkpoint", "every = '4 steps'"},
                             {"average_weights", "decay = 0.5"},
                             {"log", "every = '2 steps'"},
                             {"evaluate", "every = '2 steps'\nmode = 'background'"}};
  auto whole = training(scratch / "whole", declared);
  whole();
  auto stopped = training(scratch / "stopped", declared);
  add(stopped, {.after_step = [](const TrainState& state) {
        if (state.at.step == 9) state.stop("half way");
      }});
  EXPECT_EQ(stopped().at.step, 9);
  stopped.add = {};
  const auto end = stopped();
  expect_same(text(end));
  EXPECT_EQ(end.at.step, 15);
  if (cluster->is_chief()) {
    EXPECT_EQ(deterministic_results(stopped.folder), deterministic_results(whole.folder));
  }
}

/// Detects objects whose scores differ between images.
struct Finding : LineDetector {
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    auto found = LineDetector::find_objects(batch, nullptr);
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto& first = found[i][0];
      first.score = 0.5F + 0.04F * static_cast<float>(batch.images[i].image_id);
      first.mask = {.height = 64, .width = 64, .counts = {100, 30, 64 * 64 - 130}};
      found[i].push_back(first);
      found[i].back().score = 0.1F;
    }
    return found;
  }
};

std::string deterministic_results(const DetectorScores& scores, const fs::path& file) {
  coco::write_detections(file, scores.detections);
  return fmt::format("{} {} {} {} {}", scores.images, scores.found,
                     fmt::join(scores.boxes.stats, " "), fmt::join(scores.masks->stats, " "),
                     read_file(file));
}

TEST(Ranks, MatchEvaluationOfOneProcess) {
  const Scratch scratch;
  Finding model;
  const auto data = fake_validation();
  for (const std::int64_t images : {0, 1, 7}) {
    const EvaluationRun run{.max_images = images, .keep_detections = true};
    const auto together = evaluate_detector(model, data, run, *cluster);
    ASSERT_TRUE(together.has_value());
    if (!cluster->is_chief()) continue;
    EXPECT_EQ(together->images, images == 0 ? kEpochImages : images);
    EXPECT_EQ(deterministic_results(*together, scratch / "together"),
              deterministic_results(*evaluate_detector(model, data, run), scratch / "alone"));
  }
}

TEST(Ranks, CancelEvaluationTogether) {
  Finding model;
  const auto data = fake_validation();
  EvaluationRun run;
  run.watch.cancelled = [] { return is_last_rank(); };
  EXPECT_FALSE(evaluate_detector(model, data, run, *cluster).has_value());
}

TEST(Ranks, EvaluateEquallyInAllModes) {
  const Scratch scratch;
  std::set<std::string> results;
  for (const std::string mode : {"inline", "score_in_background", "background"}) {
    auto run = training(scratch / mode, {{"log", "every = '2 steps'"},
                                         {"checkpoint", "every = '3 steps'"},
                                         {"evaluate", "every = '1 epoch'\nmode = '" + mode + "'"}});
    run.make_model = [] { return std::make_unique<Finding>(); };
    std::map<std::string, double> known;
    add(run, {.on_all_ranks = true,
              .after_train = [&](const TrainState& state) { known = state.latest; }});
    run();
    EXPECT_TRUE(known.contains("segm/AP"));
    expect_same(fmt::format("{} {}", known["bbox/AP"], known["segm/AP"]));
    if (!cluster->is_chief()) continue;
    std::string all;
    for (const auto* step : {"step-000005", "step-000010", "step-000015"})
      all += read_file(run.folder / "detections" / (std::string(step) + ".json"));
    for (const auto& line : metrics(run.folder))
      if (line.contains("bbox/AP"))
        all += fmt::format("{} {}\n", line.at("step").get<int>(), line.at("bbox/AP").get<double>());
    results.insert(all);
  }
  if (cluster->is_chief()) {
    EXPECT_EQ(results.size(), 1U);
  }
}

TEST(Ranks, StopTogetherIfTargetsAreReached) {
  const Scratch scratch;
  auto run =
      training(scratch / "run", {{"evaluate", "every = '1 epoch'\ntargets = { 'bbox/AP' = 0.01 }"},
                                 {"checkpoint", "every = '100 steps'"}});
  const auto end = run();
  expect_same(text(end));
  EXPECT_EQ(end.at.step, 5);
}

TEST(Ranks, ComputeValidationLossOverAllImages) {
  const Scratch scratch;
  struct Known final : LineDetector {
    LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
      if (!step.without_training) return LineDetector::compute_losses(batch, step);
      float sum = 0;
      for (const auto& image : batch.images) sum += static_cast<float>(image.image_id);
      return {{"id", at::tensor(sum), {"images", static_cast<double>(batch.size())}}};
    }
  };
  auto run = training(scratch / "run", {{"validation_loss", ""}});
  run.make_model = [] { return std::make_unique<Known>(); };
  double loss = 0;
  add(run, {.on_all_ranks = true,
            .after_train = [&](const TrainState& state) { loss = state.latest.at("val/loss"); }});
  run();
  EXPECT_NEAR(loss, 5.5, 1e-6);
}

TEST(Ranks, ReportSlowestRank) {
  Stragglers stragglers(std::chrono::seconds(10));
  const auto begin = Clock::now();
  const auto last = cluster->size() - 1;
  for (int second = 0; second < 10; ++second) {
    const auto said = stragglers.add(
        {.slowest = second % 5 == 0 ? 0 : last, .slowest_s = 0.5, .slowest_waited_s = 0.25},
        *cluster, begin + std::chrono::seconds(second));
    EXPECT_FALSE(said.has_value());
  }
  const auto said = stragglers.add({}, *cluster, begin + std::chrono::seconds(10));
  ASSERT_TRUE(said.has_value());
  EXPECT_THAT(*said, HasSubstr(cluster->name(last)));
  // Without a slow rank, nothing is logged.
  EXPECT_FALSE(stragglers.add({}, *cluster, begin + std::chrono::seconds(20)).has_value());
}

}  // namespace
}  // namespace millrace::testing
