#include "millrace/trainer/callback.h"

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "millrace/callbacks/common/progress_line.h"
#include "tests/callbacks/training.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST(CheckpointCallback, KeepsNewestAndSavesAtEnd) {
  const Scratch scratch;
  Training{.folder = scratch / "run",
           .declared = {{"checkpoint", "every = '4 steps'\nkeep = 2"}}}();
  EXPECT_THAT(names_in(scratch / "run" / "checkpoints"),
              ElementsAre("latest", "step-000012", "step-000015"));
}

TEST(CheckpointCallback, SavesNothingAfterFailure) {
  const Scratch scratch;
  const Training run{.folder = scratch / "run",
                     .declared = {{"checkpoint", "every = '4 steps'"}},
                     .before_step = [](const TrainState& s) {
                       if (s.at.step == 6) throw Error("broke");
                     }};
  EXPECT_THROW(run(), Error);
  EXPECT_THAT(names_in(scratch / "run" / "checkpoints"), ElementsAre("latest", "step-000004"));
}

TEST(KeepBestCallback, KeepsStepWithBestMetric) {
  const Scratch scratch;
  Training{.folder = scratch / "run",
           .declared = {{"keep_best", "metric = 'bbox/AP'"}, {"evaluate", "every = '1 epoch'"}}}();
  // The fake detector never improves, so the first evaluation stays the best.
  EXPECT_EQ(read_checkpoint(scratch / "run" / "checkpoints" / "best").at.step, 5);
}

TEST(FiguresCallback, RequestsFiguresAfterEachTrigger) {
  const Scratch scratch;
  std::vector<std::int64_t> steps;
  const Training run{.folder = scratch / "run",
                     .declared = {{"log", "every = '1 steps'"}, {"figures", "every = '4 steps'"}}};
  run();
  for (const auto& line : metrics(scratch / "run"))
    if (line.contains("line/error")) steps.push_back(line.at("step"));
  EXPECT_THAT(steps, ElementsAre(1, 5, 9, 13));
}

TEST(LogCallback, AveragesOverWindow) {
  const Scratch scratch;
  std::vector<double> losses;
  Training run{.folder = scratch / "run",
               .declared = {{"log", "every = '4 steps'"}, {"evaluate", "every = '1 epoch'"}},
               .before_step = [&](const TrainState& s) {
                 if (s.at.step > 0) losses.push_back(s.scalars.at(2).value);
               }};
  run();
  const auto lines = metrics(scratch / "run");
  std::vector<int> steps;
  for (const auto& line : lines) steps.push_back(line.at("step"));
  EXPECT_THAT(steps, ElementsAre(4, 5, 8, 10, 12, 15));
  EXPECT_EQ(lines[0].at("epoch"), 0.8);
  EXPECT_NEAR(lines[0].at("loss").get<double>(),
              (losses[0] + losses[1] + losses[2] + losses[3]) / 4, 1e-12);
  EXPECT_TRUE(lines[1].contains("bbox/AP") && !lines[1].contains("loss"));
  EXPECT_TRUE(lines[5].contains("bbox/AR100") && lines[5].contains("loss"));
}

TEST(Windows, ReportLastRateAndTotalCounts) {
  const Scratch scratch;
  std::vector<double> rates;
  Training run{.folder = scratch / "run", .declared = {{"log", "every = '5 steps'"}}};
  run.make_model = [] {
    auto model = std::make_unique<LineDetector>();
    model->bad_from = 1;
    model->bad_until = 4;
    return model;
  };
  run.before_step = [&](const TrainState& s) {
    if (s.at.step > 0) rates.push_back(s.lr);
    if (s.at.step == 7) s.hyper.set("optimizer.momentum", 0.5, "test");
  };
  run();
  const auto lines = metrics(run.folder);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(rates[4], rates[3]);  // warm-up
  EXPECT_EQ(lines[0].at("lr"), rates[4]);
  EXPECT_EQ(lines[0].at("bad_steps"), 3);
  EXPECT_EQ(lines[1].at("lr"), rates[9]);
  EXPECT_EQ(lines[1].at("bad_steps"), 3);  // in total up to this step
  EXPECT_EQ(lines[1].at("optimizer.momentum"), 0.5);
  EXPECT_FALSE(lines[0].contains("optimizer.momentum"));
}

TEST(Windows, AreWrittenAtEndOfTraining) {
  const std::map<std::string, std::function<void(const TrainState&)>> ends = {
      {"failure", [](const TrainState&) { throw Error("broke"); }},
      {"signal", [](const TrainState&) { std::raise(SIGTERM); }},
      {"stop", [](const TrainState& s) { s.stop("enough"); }}};
  for (const auto& [name, end] : ends) {
    const Scratch scratch;
    std::vector<double> losses;
    const Training run{.folder = scratch / "run",
                       .declared = {{"log", ""}, {"csv", ""}, {"checkpoint", ""}},
                       .before_step = [&](const TrainState& s) {
                         if (s.at.step > 0) losses.push_back(s.scalars.at(2).value);
                         if (s.at.step == 3) end(s);
                       }};
    try {
      run();
    } catch (const Error&) {
      EXPECT_EQ(name, "failure");
    }
    const auto lines = metrics(run.folder);
    ASSERT_EQ(lines.size(), 1U) << name;
    const auto steps = lines[0].at("step").get<std::int64_t>();
    EXPECT_EQ(steps, name == "failure" ? 3 : 4);
    if (steps == 3) {
      EXPECT_NEAR(lines[0].at("loss").get<double>(), (losses[0] + losses[1] + losses[2]) / 3,
                  1e-12);
    }
    EXPECT_THAT(read_file(run.folder / "metrics.csv"), ::testing::HasSubstr(",loss,"));
  }
}

TEST(Windows, AreWrittenIfTrainingDiverges) {
  const Scratch scratch;
  Training run{.folder = scratch / "run", .declared = {{"log", ""}}};
  run.make_model = [] {
    auto model = std::make_unique<LineDetector>();
    model->bad_from = 2;
    model->bad_until = 1000;
    return model;
  };
  EXPECT_THROW(run(), Error);
  const auto lines = metrics(run.folder);
  ASSERT_EQ(lines.size(), 1U);
  // Step 12 is the tenth bad step in a row, which ends the run.
  EXPECT_EQ(lines[0].at("step"), 11);
  EXPECT_EQ(lines[0].at("bad_steps"), 9);
  EXPECT_TRUE(lines[0].contains("loss"));  // the mean of the first two steps
}

TEST(CallbackList, ReportsCallbackWithInvalidState) {
  for (const auto* name : {"log", "evaluate", "keep_best"}) {
    auto list = made(std::string(name) == "keep_best" ? Declared{{name, ""}, {"evaluate", ""}}
                                                      : Declared{{name, ""}});
    LineDetector model;
    TrainState state(model, {});
    for (const auto* saved : {"{}", "[", "{\"bytes\":\"x\",\"owed\":3,\"best\":[]}"})
      EXPECT_THAT(
          [&] {
            list.load(state, {{name, saved}}, {});
          },
          ::testing::ThrowsMessage<Error>(
              HasSubstr(std::string("state of callback '") + name + "'")))
          << name << saved;
  }
}

TEST(ProgressLine, FitsTerminal) {
  const ProgressMetrics figures{.epoch = 2.25,
                                .epochs = 12,
                                .step = 345,
                                .steps = 1536,
                                .losses = {{"loss", 0.8125}, {"loss_mask", 0.5}},
                                .lr = 0.02,
                                .images_per_s = 12.34,
                                .data_wait_share = 0.021,
                                .left_s = 753};
  EXPECT_EQ(progress_line(figures),
            "epoch 2.25/12 step 345/1536  12:33 left  loss 0.812 (loss_mask 0.500)  12.3 images/s  "
            "data wait 2%  lr 0.02");
  // The least important parts are omitted first; the remaining parts are shown in full.
  EXPECT_EQ(progress_line(figures, 59),
            "epoch 2.25/12  [====>             ]  12:33 left  loss 0.812");
  EXPECT_EQ(progress_line(figures, 79),
            "epoch 2.25/12  [=>      ]  step 345/1536  12:33 left  loss 0.812  12.3 images/s");
  EXPECT_EQ(
      progress_line(figures, 199),
      "epoch 2.25/12  [=====>                  ]  step 345/1536  12:33 left  loss 0.812 (mask "
      "0.500)  12.3 images/s  data wait 2%  lr 0.02");
  auto later = figures;
  later.scores = {{"mask AP", 0.4312}};
  EXPECT_EQ(progress_line(later, 79),
            "epoch 2.25/12  [=>      ]  12:33 left  loss 0.812  mask AP 0.431  12.3 images/s");
  later.data_wait_share = 0.4;  // a long wait for data has priority
  EXPECT_THAT(progress_line(later, 79), HasSubstr("data wait 40%"));
  EXPECT_EQ(progress_line(figures, 20), "12:33 left");
  EXPECT_EQ(progress_line(figures, 4), "12:3");
  for (int columns = 1; columns < 250; ++columns)
    EXPECT_LE(progress_line(later, columns).size(), static_cast<std::size_t>(columns));
}

}  // namespace
}  // namespace millrace::testing
