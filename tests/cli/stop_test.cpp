// SIGTERM at any moment: what was trained is saved, and the process ends with 3.
#include <chrono>
#include <csignal>
#include <functional>

#include <sys/stat.h>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class Stop : public Trainer {
 protected:
  fs::path data_ = make_data();
  fs::path runs_ = in_folder("runs");
  fs::path folder_ = runs_ / "maskrcnn-1";

  std::vector<std::string> command(const std::vector<std::string>& overrides = {}) const {
    auto arguments = on(
        data_, {"run", "--output", runs_.string()},
        {"data.short_side=64", "data.max_side=96", "train.max_steps=100000", "train.epochs=100000",
         "callbacks.log.every=\"1 steps\"", "callbacks.checkpoint.every=\"100000 steps\"",
         "callbacks.evaluate.enabled=false", "callbacks.pictures.enabled=false"});
    for (const auto& override : overrides) arguments.insert(arguments.end(), {"--set", override});
    return arguments;
  }

  /// Runs until `reached`, then sends one signal.
  Outcome stopped(const std::vector<std::string>& arguments, int signal,
                  const std::function<bool()>& reached) const {
    const auto child = start(MILLRACE_TRAINER, arguments);
    while (!reached() && ::kill(child, 0) == 0 && waitpid(child, nullptr, WNOHANG) == 0)
      ::usleep(5'000);
    ::kill(child, signal);
    return finish(child);
  }

  std::size_t lines() const {
    const auto text = read_text(folder_ / "metrics.jsonl");
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
};

TEST_F(Stop, DuringStepsSavesTheLastOne) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto end = stopped(command(), signal, [&] { return lines() >= 3; });
    EXPECT_EQ(end.exit_code, 3) << end.err;
    EXPECT_THAT(end.err, HasSubstr(signal == SIGTERM ? "stopped by SIGTERM" : "stopped by SIGINT"));
    EXPECT_THAT(end.err, HasSubstr("after the signal"));
    const auto state = read_json(folder_ / "checkpoints" / "latest" / "state.json").at("state");
    EXPECT_EQ(state.at("step"), lines());
    fs::remove_all(runs_);
  }
}

TEST_F(Stop, DuringEvaluationOrPicturesSavesTheStepBefore) {
  const auto val = in_folder("large");
  ASSERT_EQ(trainer({"sample", "--out", val.string(), "--train", "8", "--val", "200"}).exit_code,
            0);
  const std::string root = "data.root=\"" + val.string() + "\"";
  for (const std::string mode : {"inline", "score_in_background", "background"}) {
    const auto end =
        stopped(command({root, "callbacks.evaluate.enabled=true", "callbacks.evaluate.mode=" + mode,
                         "callbacks.evaluate.every=\"2 steps\""}),
                SIGTERM, [&] { return lines() >= 1; });
    EXPECT_EQ(end.exit_code, 3) << mode << end.err;
    EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / "latest" / "state.json")) << mode;
    fs::remove_all(runs_);
  }
  const auto end =
      stopped(command({root, "callbacks.pictures.enabled=true", "callbacks.pictures.count=200",
                       "callbacks.pictures.every=\"1 steps\""}),
              SIGTERM, [&] { return fs::exists(folder_ / "pictures" / "step-000001"); });
  EXPECT_EQ(end.exit_code, 3) << end.err;
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / "latest" / "state.json"));
}

TEST_F(Stop, WhileItWaitsForDataSavesTheStepBefore) {
  for (const auto& image : fs::directory_iterator(data_ / "train2017")) {
    fs::remove(image);  // nobody ever writes into the pipe that takes its place
    ASSERT_EQ(::mkfifo(image.path().c_str(), 0600), 0);
  }
  const auto end = stopped(command(), SIGTERM, [&] {
    return fs::exists(folder_ / "config.toml") && (::usleep(500'000), true);
  });
  EXPECT_EQ(end.exit_code, 3) << end.err;
}

TEST_F(Stop, WhileWeightsLoadOrTheSampleIsMadeLeavesNoHarm) {
  const auto pipe = in_folder("weights.safetensors");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto loading = stopped(command({"model.weights=\"" + pipe.string() + "\""}), SIGTERM, [&] {
    return fs::exists(folder_ / "log.txt") && (::usleep(300'000), true);
  });
  EXPECT_EQ(loading.exit_code, 3) << loading.err;

  const auto sample = in_folder("sample"), own = in_folder("own.toml");
  write_text(own, "base = \"" + fs::absolute("configs/maskrcnn.toml").string() +
                      "\"\n[data]\nroot = \"" + sample.string() +
                      "\"\n[data.sample]\ntrain = 5000\n");
  auto making = command();
  const auto config = std::ranges::find(making, "configs/maskrcnn.toml");
  *config = own.string();
  making.erase(config + 1, config + 3);  // --set data.root=...
  const auto end = stopped(making, SIGTERM, [&] { return fs::exists(sample.string() + ".part"); });
  EXPECT_EQ(end.exit_code, 3) << end.err;
  EXPECT_FALSE(fs::exists(sample));
  for (const auto& more : {"data.sample.train=8", "data.sample.val=4", "train.max_steps=1"})
    making.insert(making.end(), {"--set", more});
  const auto again = trainer(making);
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(Stop, ASecondSignalKills) {
  for (const auto& image : fs::directory_iterator(data_ / "train2017")) {
    fs::remove(image);
    ASSERT_EQ(::mkfifo(image.path().c_str(), 0600), 0);
  }
  const auto child = start(MILLRACE_TRAINER, command());
  while (!fs::exists(folder_ / "config.toml")) ::usleep(5'000);
  ::usleep(500'000);
  ::kill(child, SIGTERM);
  ::usleep(200'000);
  ::kill(child, SIGTERM);
  EXPECT_EQ(finish(child).exit_code, -1);
}

}  // namespace
}  // namespace millrace::testing
