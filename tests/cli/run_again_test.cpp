// Further use of a run folder: by a resumed run, a second process or a different configuration, and
// to analyse failures.
#include <cstring>
#include <regex>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class RunAgain : public Trainer {
 protected:
  fs::path data_ = make_data();
  fs::path folder_ = in_folder("runs") / "maskrcnn-1";

  Words command(const Words& overrides = {}, const Words& more = {}) const {
    return on(data_, {"run", "--out", in_folder("runs")},
              Words{"data.short_side=64", "data.max_side=96", "train.max_steps=4",
                    "schedule.warmup=2 steps", "callbacks.checkpoint.every='1 steps'"} +
                  kTrainOnly + overrides) +
           more;
  }

  Outcome resume(const Words& overrides) const { return trainer(command(overrides, {"--resume"})); }
};

TEST_F(RunAgain, ReportsAllowedAndRejectsOtherChanges) {
  successful(trainer(command()));
  const auto longer = successful(resume({"train.max_steps=6", "data.threads=1"}));
  EXPECT_THAT(longer.err,
              AllOf(ContainsRegex("data.threads.*0.*1"), ContainsRegex("train.max_steps.*4.*6")));
  EXPECT_EQ(read_json(folder_ / "record.json").at("starts").back().at("from_step"), 4);
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / "step-000006"));
  const auto config = read_text(folder_ / "config.toml");

  expect_error(resume({"train.seed=2"}), 2, "train.seed");
  expect_error(resume({"model.backbone.width=32"}), 2, "model.backbone.width");
  expect_error(resume({"data.classes=[\"star\"]"}), 2, "data.classes");
  const auto more = in_folder("more");
  successful(trainer({"sample", "--out", more, "--train", "9", "--val", "4"}));
  expect_error(resume({setting("data.root", more)}), 2, "9");
  EXPECT_EQ(read_text(folder_ / "config.toml"), config) << "nothing was written";

  auto retinanet = command({}, {"--resume"});
  *std::ranges::find(retinanet, "configs/maskrcnn.toml") = "configs/retinanet.toml";
  *std::ranges::find(retinanet, in_folder("runs").string()) = folder_.string();
  expect_error(trainer(retinanet), 2, "model.type");
}

TEST_F(RunAgain, SuggestsOnlyNewReports) {
  const auto first = successful(trainer(command())).err;
  EXPECT_THAT(first, ContainsRegex("info next: open [^;]*report.html; trainer predict "));
  const auto second =
      successful(resume({"train.max_steps=5", "callbacks.report.enabled=false"})).err;
  EXPECT_THAT(second,
              AllOf(ContainsRegex("info next: trainer report "), Not(HasSubstr("next: open"))));
}

TEST_F(RunAgain, RejectsSecondProcess) {
  const auto first = start(MILLRACE_TRAINER, command({"train.max_steps=100000"}));
  while (!fs::exists(folder_ / "checkpoints" / "latest")) ::usleep(10'000);
  const auto err = in_folder("second");
  const auto line = MILLRACE_TRAINER + quoted(command({}, {"--resume"})) + " 2> " + err.string();
  const int second = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(second), 1);
  EXPECT_THAT(read_text(err), AllOf(HasSubstr((folder_ / "lock").string()),
                                    HasSubstr(" " + std::to_string(first) + " ")));
  ::kill(first, SIGKILL);
  finish(first);
  EXPECT_EQ(resume({"train.max_steps=1"}).exit_code, 0) << "the lock ends with its process";
}

TEST_F(RunAgain, ResumesFromLastIntactCheckpoint) {
  successful(trainer(command()));
  const auto checkpoints = folder_ / "checkpoints";
  fs::resize_file(checkpoints / "step-000004" / "model.safetensors", 1000);
  fs::remove(checkpoints / "latest");
  fs::create_symlink("step-000077", checkpoints / "latest");
  const auto resumed = successful(resume({}));
  EXPECT_THAT(resumed.err, HasSubstr("step-000004"));
  EXPECT_EQ(read_json(folder_ / "record.json").at("starts").back().at("from_step"), 3);
  for (const auto& entry : fs::directory_iterator(checkpoints))
    if (!entry.is_symlink()) fs::resize_file(entry.path() / "state.json", 10);
  expect_error(resume({}), 1, checkpoints.string());
}

TEST_F(RunAgain, ReportsFullDiskAndResumes) {
  const auto full =
      run("/bin/bash", {"-c", "ulimit -f 600; exec " MILLRACE_TRAINER + quoted(command())});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, AllOf(HasSubstr("step 1"), HasSubstr("File too large")));
  EXPECT_TRUE(fs::is_empty(folder_ / "checkpoints"));
  expect_error(resume({}), 2, "maskrcnn-1");
  EXPECT_EQ(trainer(command({}, {"--resume=auto"})).exit_code, 0);
  EXPECT_TRUE(fs::exists(in_folder("runs") / "maskrcnn-2" / "checkpoints" / "step-000004"));
}

TEST_F(RunAgain, ReportsRemovedFolder) {
  const auto child = start(MILLRACE_TRAINER, command({"train.max_steps=100000"}));
  while (!fs::exists(folder_ / "checkpoints" / "step-000002")) ::usleep(10'000);
  fs::rename(folder_, in_folder("elsewhere"));
  const auto ended = finish(child);
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr((folder_).string()));
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints"));
}

TEST_F(RunAgain, ReplaysDivergedStep) {
  const auto diverged = trainer(command({"optimizer.lr=1e30", "optimizer.clip_norm=0.0",
                                         "schedule.warmup=0 steps", "train.max_steps=4"}));
  EXPECT_EQ(diverged.exit_code, 1) << diverged.err;  // most of its steps were skipped
  const auto records = folder_ / "diverged";
  ASSERT_TRUE(fs::exists(records)) << diverged.err;
  fs::remove_all(folder_ / "checkpoints");
  int seen = 0;
  for (const auto& record : fs::directory_iterator(records)) {
    EXPECT_THAT(diverged.err, HasSubstr("trainer run --replay " + record.path().string()));
    const auto replay = successful(trainer({"run", "--replay", record.path().string()}));
    EXPECT_THAT(replay.out, AllOf(Not(HasSubstr("not reproduced")), HasSubstr("finite inputs")));
    ++seen;
  }
  EXPECT_GE(seen, 1);
  EXPECT_LE(seen, 3);

  const auto record = fs::directory_iterator(records)->path();
  const auto file = record / "record.json";
  auto json = read_json(file);
  json["lr"] = 0.5;
  json["scalars"][0][1] = 123.5;
  write_json(file, json);
  const auto other = trainer({"run", "--replay", record});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.out, AllOf(HasSubstr("recorded: 123.5"), HasSubstr("not reproduced")));
  expect_error(trainer({"run", "--replay", folder_}), 1, folder_.string());
}

TEST_F(RunAgain, CountsBadGradientOncePerStep) {
  trainer(command({"optimizer.lr=1e30", "optimizer.clip_norm=0.0", "schedule.warmup=0 steps",
                   "train.micro_batch=1", "train.threads=1", "data.test_batch_size=1"}));
  ASSERT_TRUE(fs::exists(folder_ / "diverged"));
  const auto record = fs::directory_iterator(folder_ / "diverged")->path();
  const auto replay = successful(trainer({"run", "--replay", record})).out;
  std::smatch bad;
  ASSERT_TRUE(std::regex_search(replay, bad, std::regex("(\\d+) gradients "))) << replay;
  const auto model = read_text(record / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, model.data(), sizeof(length));
  EXPECT_LE(std::stoul(bad[1]), Json::parse(model.substr(8, length)).size());
}

TEST_F(RunAgain, VerifiesDeterminism) {
  EXPECT_EQ(trainer(command({}, {"--verify-determinism", "3"})).exit_code, 2)
      << "a verification writes no output";
  const Words small = {"data.short_side=64", "data.max_side=96"};
  for (const auto& more :
       {Words{}, Words{"train.micro_batch=1", "train.threads=1", "data.test_batch_size=1"}}) {
    const auto same =
        successful(trainer(on(data_, {"run", "--verify-determinism", "3"}, small + more)));
    EXPECT_THAT(same.out, HasSubstr("equal: 3 steps"));
  }
  EXPECT_FALSE(fs::exists(in_folder("runs")));

  write_text(in_folder("noisy.toml"), "plugins = ['" NOISY_PLUGIN "']\n[data]\nroot = '" +
                                          data_.string() + "'\n[model]\ntype = 'noisy'\n");
  const auto noisy = trainer({"run", in_folder("noisy.toml"), "--verify-determinism", "3"});
  EXPECT_EQ(noisy.exit_code, 1) << noisy.err;
  EXPECT_THAT(noisy.out, AllOf(HasSubstr("not equal: "), HasSubstr("'fit'"), HasSubstr("step 2")));
}

TEST_F(RunAgain, RequiresConfigWithoutReplay) { expect_error(trainer({"run"}), 2, "CONFIG"); }

}  // namespace
}  // namespace millrace::testing
