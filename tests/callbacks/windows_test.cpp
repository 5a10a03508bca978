// What a writer makes of the figures of several steps, however the training ends.
#include <gmock/gmock.h>

#include <csignal>

#include "tests/callbacks/training.h"

namespace millrace::testing {
namespace {

TEST(Windows, TellRatesAndCountsAsTheyWereLast) {
  const Scratch scratch;
  std::vector<double> rates;
  Training run{.folder = scratch / "run", .declared = {{"log", "every = '5 steps'"}}};
  run.make_model = [] {
    auto model = std::make_unique<LineDetector>();
    model->bad_from = 1;
    model->bad_until = 4;
    return model;
  };
  run.before_step = [&](TrainState& s) {
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
  EXPECT_EQ(lines[1].at("bad_steps"), 3);  // so far
  EXPECT_EQ(lines[1].at("optimizer.momentum"), 0.5);
  EXPECT_FALSE(lines[0].contains("optimizer.momentum"));
}

TEST(Windows, AreWrittenWhereTheTrainingEndsWithinThem) {
  const std::map<std::string, std::function<void(TrainState&)>> ends = {
      {"failure", [](TrainState&) { throw Error("broke"); }},
      {"signal", [](TrainState&) { std::raise(SIGTERM); }},
      {"stop", [](TrainState& s) { s.stop("enough"); }}};
  for (const auto& [name, end] : ends) {
    const Scratch scratch;
    std::vector<double> losses;
    const Training run{.folder = scratch / "run",
                       .declared = {{"log", ""}, {"csv", ""}, {"checkpoint", ""}},
                       .before_step = [&](TrainState& s) {
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

TEST(Windows, AreWrittenWhereTheTrainingDiverges) {
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
  EXPECT_EQ(lines[0].at("step"), 11);  // the next was the tenth in a row, and the end
  EXPECT_EQ(lines[0].at("bad_steps"), 9);
  EXPECT_TRUE(lines[0].contains("loss"));  // that of the first two steps
}

}  // namespace
}  // namespace millrace::testing
