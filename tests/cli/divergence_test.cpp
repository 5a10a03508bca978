// train.on_divergence = "return": a model whose learning rate is too high returns to a checkpoint;
// a run that is killed and resumed meanwhile ends with the same bytes.
#include <csignal>
#include <thread>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class Divergence : public Trainer {
 protected:
  fs::path data_ = make_data();

  Words command(const std::string& runs, const Words& overrides) const {
    return on(data_, {"run", "--out", in_folder(runs)},
              kTrainOnly +
                  Words{"train.max_steps=40", "train.epochs=100", "optimizer.lr=1e5",
                        "schedule.warmup='40 steps'", "train.on_divergence='return'",
                        "callbacks.checkpoint.every='5 steps'"} +
                  overrides);
  }

  std::string weights(const std::string& runs) const {
    return read_text(in_folder(runs) / "maskrcnn-1/checkpoints/latest/model.safetensors");
  }

  /// Kills a run with SIGKILL once its record contains a session that ended by divergence.
  void kill_after_return(const std::string& runs, const Words& words) const {
    const auto child = start(MILLRACE_TRAINER, words);
    const auto record = in_folder(runs) / "maskrcnn-1/record.json";
    while (read_text(record).find("\"divergence\"") == std::string::npos &&
           waitpid(child, nullptr, WNOHANG) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ASSERT_THAT(read_text(record), HasSubstr("\"divergence\""));
  }
};

TEST_F(Divergence, WritesSameBytesIfKilledAfterReturn) {
  successful(trainer(command("whole", {})));
  const auto run = in_folder("whole/maskrcnn-1");
  const auto record = read_json(run / "record.json");
  EXPECT_GE(record.at("starts").size(), 2U);
  EXPECT_EQ(record.at("starts")[0].at("ended").at("reason"), "divergence");
  EXPECT_EQ(record.at("starts").back().at("ended").at("step"), 40);
  EXPECT_THAT(read_text(run / "metrics.jsonl"), HasSubstr("\"returns\":"));

  kill_after_return("killed", command("killed", {}));
  successful(trainer(command("killed", {}) + Words{"--resume"}));
  EXPECT_EQ(weights("killed"), weights("whole"));
}

TEST_F(Divergence, EndsAfterLastReturn) {
  const auto outcome =
      trainer(command("other_data", {"train.on_return='skip_data'", "train.max_steps=200"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("optimizer.lr"));
  std::size_t warnings = 0;
  std::istringstream log(outcome.err);
  for (std::string line; std::getline(log, line);)
    warnings += line.find(" warning ") != std::string::npos;
  EXPECT_LE(warnings, 20U) << "a few per return, not one per step\n" << outcome.err;
}

TEST_F(Divergence, ResumesBeforeDivergedSteps) {
  const Words settings = {"train.on_divergence='end'", "callbacks.checkpoint.every='1 step'",
                          "callbacks.memory_checkpoint.every='1 step'",
                          "callbacks.checkpoint.keep=0"};
  EXPECT_EQ(trainer(command("run", settings)).exit_code, 1);
  const auto run = in_folder("run/maskrcnn-1");
  const auto ended = read_json(run / "record.json").at("starts").back().at("ended");
  EXPECT_EQ(ended.at("reason"), "divergence");
  EXPECT_FALSE(fs::exists(run / "memory"));
  Outcome resumed;
  std::int64_t last = ended.at("step");
  for (int tries = 0; tries < 8 && resumed.exit_code != 0; ++tries) {
    resumed = trainer(command("run", settings + Words{"optimizer.lr=0.001"}) + Words{"--resume"});
    const std::int64_t from = read_json(run / "record.json").at("starts").back().at("from_step");
    EXPECT_LT(from, last) << resumed.err;
    last = from;
  }
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(Divergence, NamesRepeatedEditUntilReverted) {
  const Words settings = {"optimizer.lr=0.001", "callbacks.checkpoint.every='1 step'",
                          "callbacks.checkpoint.keep=0",
                          "callbacks.live_edit.interval='0 seconds'"};
  successful(trainer(command("run", settings + Words{"train.max_steps=5"})));
  const auto run = in_folder("run/maskrcnn-1");
  write_text(run / "edits.jsonl",
             R"({"after_step":7,"name":"lr_factor","from":1.0,"to":1e12,"time":""})"
             "\n");
  const auto resume = command("run", settings) + Words{"--resume"};
  const auto returned = trainer(resume);
  EXPECT_EQ(returned.exit_code, 1);
  EXPECT_THAT(returned.err, AllOf(HasSubstr("lr_factor"), HasSubstr("step 7"),
                                  HasSubstr((run / "edit.toml").string())));
  write_text(run / "edit.toml", "lr_factor = 'withdraw'\n");
  successful(trainer(resume));
  const auto edits = read_text(run / "edits.jsonl");
  EXPECT_TRUE(edits.empty() || edits.find("\"to\":1.0") != std::string::npos) << edits;
}

TEST_F(Divergence, EndsIfThereIsNoCheckpoint) {
  const auto outcome = trainer(command("never", {"callbacks.checkpoint.every='1000 steps'"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("callbacks.checkpoint.every"));
}

}  // namespace
}  // namespace millrace::testing
