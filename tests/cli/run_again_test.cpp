// Further use of a run folder: by a resumed run, another process, another configuration, and for
// the analysis of failures.
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

TEST_F(RunAgain, WithAnotherConfigSaysEveryChangeAndRefusesWhatCannotWork) {
  successful(trainer(command()));
  const auto longer = successful(resume({"train.max_steps=6", "data.threads=1"}));
  EXPECT_THAT(longer.err,
              AllOf(HasSubstr("changed since the checkpoint: data.threads: was 0, is 1"),
                    HasSubstr("changed since the checkpoint: train.max_steps: was 4, is 6"),
                    HasSubstr("resuming after step 4")));
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / "step-000006"));
  const auto config = read_text(folder_ / "config.toml");

  expect_error(resume({"train.seed=2"}), 2, "train.seed: was 1, is 2");
  expect_error(resume({"model.backbone.width=32"}), 2,
               "model.backbone.width: was 16, is 32: the model: '");
  expect_error(resume({"data.classes=[\"star\"]"}), 2, "data.classes: was [], is [\"star\"]");
  const auto more = in_folder("more");
  successful(trainer({"sample", "--out", more, "--train", "9", "--val", "4"}));
  expect_error(resume({setting("data.root", more)}), 2, "samples, now there are 9");
  EXPECT_EQ(read_text(folder_ / "config.toml"), config) << "nothing has begun";

  auto retinanet = command({}, {"--resume"});
  *std::ranges::find(retinanet, "configs/maskrcnn.toml") = "configs/retinanet.toml";
  *std::ranges::find(retinanet, in_folder("runs").string()) = folder_.string();
  expect_error(trainer(retinanet), 2, "model.type: was \"maskrcnn\", is \"retinanet\"");
}

TEST_F(RunAgain, NamesNoReportOfAnEarlierStart) {
  const auto first = successful(trainer(command())).err;
  EXPECT_THAT(first, ContainsRegex("info next: open [^;]*report.html; trainer predict "));
  const auto second =
      successful(resume({"train.max_steps=5", "callbacks.report.enabled=false"})).err;
  EXPECT_THAT(second,
              AllOf(ContainsRegex("info next: trainer report "), Not(HasSubstr("next: open"))));
}

TEST_F(RunAgain, ByASecondProcessIsRefused) {
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
  EXPECT_EQ(resume({"train.max_steps=1"}).exit_code, 0) << "the lock has died with its process";
}

TEST_F(RunAgain, GoesOnFromTheLastGoodCheckpointWhateverBecameOfOthers) {
  successful(trainer(command()));
  const auto checkpoints = folder_ / "checkpoints";
  fs::resize_file(checkpoints / "step-000004" / "model.safetensors", 1000);
  fs::remove(checkpoints / "latest");
  fs::create_symlink("step-000077", checkpoints / "latest");
  const auto resumed = successful(resume({}));
  EXPECT_THAT(resumed.err,
              AllOf(HasSubstr("step-000004 is damaged"), HasSubstr("previous checkpoint"),
                    HasSubstr("resuming after step 3")));
  for (const auto& entry : fs::directory_iterator(checkpoints))
    if (!entry.is_symlink()) fs::resize_file(entry.path() / "state.json", 10);
  expect_error(resume({}), 1, "every checkpoint in ");
}

TEST_F(RunAgain, EndsWithASentenceWhereTheDiskIsFullAndGoesOnLater) {
  const auto full =
      run("/bin/bash", {"-c", "ulimit -f 600; exec " MILLRACE_TRAINER + quoted(command())});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, AllOf(HasSubstr("checkpoint of step 1"), HasSubstr("File too large")));
  EXPECT_TRUE(fs::is_empty(folder_ / "checkpoints"));
  expect_error(resume({}), 2, "maskrcnn-1 has no checkpoint");
  EXPECT_EQ(trainer(command({}, {"--resume=auto"})).exit_code, 0);
  EXPECT_TRUE(fs::exists(in_folder("runs") / "maskrcnn-2" / "checkpoints" / "step-000004"));
}

TEST_F(RunAgain, EndsWithASentenceWhereItsFolderIsRemoved) {
  const auto child = start(MILLRACE_TRAINER, command({"train.max_steps=100000"}));
  while (!fs::exists(folder_ / "checkpoints" / "step-000002")) ::usleep(10'000);
  fs::rename(folder_, in_folder("elsewhere"));
  const auto ended = finish(child);
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr((folder_).string()));
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints"));
}

TEST_F(RunAgain, RepeatsAStepThatDiverged) {
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
    EXPECT_THAT(replay.out, AllOf(HasSubstr("reproduced: every figure is as recorded"),
                                  HasSubstr("the first operator that made")));
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
  expect_error(trainer({"run", "--replay", folder_}), 1, "record of a step");
}

TEST_F(RunAgain, CountsABadGradientOfMicroBatchesOnce) {
  trainer(command({"optimizer.lr=1e30", "optimizer.clip_norm=0.0", "schedule.warmup=0 steps",
                   "train.micro_batch=1", "train.threads=1", "data.test_batch_size=1"}));
  ASSERT_TRUE(fs::exists(folder_ / "diverged"));
  const auto record = fs::directory_iterator(folder_ / "diverged")->path();
  const auto replay = successful(trainer({"run", "--replay", record})).out;
  std::smatch bad;
  ASSERT_TRUE(std::regex_search(replay, bad, std::regex("(\\d+) gradients are not finite")))
      << replay;
  const auto model = read_text(record / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, model.data(), sizeof(length));
  EXPECT_LE(std::stoul(bad[1]), Json::parse(model.substr(8, length)).size());
}

TEST_F(RunAgain, VerifiesThatItGivesTheSameTwice) {
  EXPECT_EQ(trainer(command({}, {"--verify-determinism", "3"})).exit_code, 2)
      << "there is no output to name";
  const Words small = {"data.short_side=64", "data.max_side=96"};
  for (const auto& more :
       {Words{}, Words{"train.micro_batch=1", "train.threads=1", "data.test_batch_size=1"}}) {
    const auto same =
        successful(trainer(on(data_, {"run", "--verify-determinism", "3"}, small + more)));
    EXPECT_THAT(same.out, HasSubstr("equal: 3 steps twice, digest "));
  }
  EXPECT_FALSE(fs::exists(in_folder("runs")));

  write_text(in_folder("noisy.toml"), "plugins = ['" NOISY_PLUGIN "']\n[data]\nroot = '" +
                                          data_.string() + "'\n[model]\ntype = 'noisy'\n");
  const auto noisy = trainer({"run", in_folder("noisy.toml"), "--verify-determinism", "3"});
  EXPECT_EQ(noisy.exit_code, 1) << noisy.err;
  EXPECT_THAT(noisy.out, HasSubstr("not equal: the scalar 'fit' differs in step 2"));
}

TEST_F(RunAgain, NeedsAConfigUnlessItReplays) {
  expect_error(trainer({"run"}), 2, "CONFIG is required");
}

}  // namespace
}  // namespace millrace::testing
