// The real executable under mpirun: how ranks start, evaluate and end.
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "tests/faults/mpirun.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TrainerRanks : public Mpirun {
 protected:
  fs::path data_ = make_data();

  std::vector<std::string> run(const std::string& runs,
                               const std::vector<std::string>& overrides = {}) const {
    auto command = on(data_, {"run", "--out", in_folder(runs).string()},
                      {"data.short_side=64", "data.max_side=96", "train.max_steps=4",
                       "train.epochs=100000", "callbacks.checkpoint.every=\"2 steps\"",
                       "callbacks.evaluate.enabled=false", "callbacks.pictures.enabled=false"});
    for (const auto& override : overrides) command.insert(command.end(), {"--set", override});
    return command;
  }

  /// Trains on two ranks, with the first `count` images replaced by pipes without a writer.
  Outcome train_with_pipes(std::size_t count) {
    std::set<fs::path> images;
    for (const auto& image : fs::directory_iterator(data_ / "train2017")) images.insert(image);
    for (const auto& image : images | std::views::take(count)) {
      fs::remove(image);
      EXPECT_EQ(::mkfifo(image.c_str(), 0600), 0);
    }
    auto end = ranks(2, MILLRACE_TRAINER,
                     run("runs", {"train.max_steps=40", "train.rank_timeout='10 seconds'",
                                  "callbacks.watchdog.after=\"3 seconds\""}));
    EXPECT_EQ(end.exit_code, 1);
    // The watchdog names the stage and the image.
    EXPECT_THAT(line_with(end.err, "stage 'decode'"), HasSubstr(data_.string())) << end.err;
    return end;
  }

  std::string weights(const std::string& runs) const {
    return read_text(in_folder(runs) / "maskrcnn-1" / "checkpoints" / "latest" /
                     "model.safetensors");
  }
};

TEST_F(TrainerRanks, HaveOneRunFolderAndOneLog) {
  const auto first = ranks(2, MILLRACE_TRAINER, run("first"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, AllOf(HasSubstr(rank(0)), HasSubstr(rank(1))));
  const auto saved = first.err.find("step-000002");
  EXPECT_NE(saved, std::string::npos);
  EXPECT_EQ(saved, first.err.rfind("step-000002"));  // logged once
  EXPECT_FALSE(fs::exists(in_folder("first") / "maskrcnn-2"));
  ASSERT_EQ(ranks(2, MILLRACE_TRAINER, run("second")).exit_code, 0);
  EXPECT_TRUE(weights("first") == weights("second"));

  ASSERT_EQ(ranks(2, MILLRACE_TRAINER, run("third", {"train.max_steps=2"})).exit_code, 0);
  auto resume = run("third");
  resume.push_back("--resume");
  const auto resumed = ranks(2, MILLRACE_TRAINER, resume);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(weights("first") == weights("third"));
  EXPECT_THAT(resumed.err, Not(ContainsRegex("ranks[^\n]*learning rate")));

  resume = run("third", {"train.max_steps=5"});
  resume.push_back("--resume");
  EXPECT_THAT(trainer(resume).err, ContainsRegex("ranks[^\n]*[0-9]+ images?[^\n]*learning rate"));
}

TEST_F(TrainerRanks, RejectResumeWithoutRun) {
  auto resume = run("runs", {"train.max_steps=2"});
  resume.push_back("--resume");
  const auto refused = ranks(2, MILLRACE_TRAINER, resume);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("--resume"), HasSubstr("'maskrcnn'"),
                                 HasSubstr(in_folder("runs").string())));
  EXPECT_FALSE(fs::exists(in_folder("runs")));

  resume.back() += "=auto";
  const auto started = ranks(2, MILLRACE_TRAINER, resume);
  EXPECT_EQ(started.exit_code, 0) << started.err;
  const auto again = ranks(2, MILLRACE_TRAINER, resume);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("maskrcnn-1"), HasSubstr("step 2")));
  const auto record = read_json(in_folder("runs") / "maskrcnn-1" / "record.json");
  ASSERT_EQ(record.at("starts").size(), 1);
  const auto& used = record.at("used");
  ASSERT_EQ(used.at("peak_memory_mib").size(), 2);
  EXPECT_GT(used.at("parts").at("sync").at("wall_s"), 0);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_GT(used.at("peak_memory_mib").at(rank), 10);
    const auto& where = record.at("starts").at(0).at("ranks").at(rank);
    EXPECT_EQ(where.at("rank"), rank);
    EXPECT_EQ(where.at("host"), host());
    EXPECT_EQ(where.at("local_size"), 2);
  }
}

TEST_F(TrainerRanks, RejectDifferentConfigurations) {
  auto arguments = run("runs");
  std::vector<std::string> all = {"--oversubscribe", "-np", "1", MILLRACE_TRAINER};
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.insert(all.end(), {":", "-np", "1", MILLRACE_TRAINER});
  arguments = run("runs", {"optimizer.lr=0.5"});
  all.insert(all.end(), arguments.begin(), arguments.end());
  const auto end = Trainer::run(MILLRACE_MPIEXEC, all);
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, AllOf(HasSubstr(rank(1)), HasSubstr(rank(0)),
                             ContainsRegex("optimizer\\.lr[^\n]* 0\\.5")));
  EXPECT_FALSE(fs::exists(in_folder("runs")));
}

TEST_F(TrainerRanks, EvaluateLikeOneProcess) {
  ASSERT_EQ(trainer(run("run")).exit_code, 0);
  const auto eval = [&](const std::string& out) {
    // One thread per process, like ranks that share the cores: rounding depends on how sums are
    // divided among threads.
    return on(data_,
              {"eval", "--json", "--out", in_folder(out).string(), "--weights",
               (in_folder("run") / "maskrcnn-1" / "checkpoints" / "latest").string()},
              {"train.threads=1"});
  };
  const auto alone = trainer(eval("alone"));
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  const auto together = ranks(2, MILLRACE_TRAINER, eval("together"));
  ASSERT_EQ(together.exit_code, 0) << together.err;
  auto one = alone.json(), two = together.json();
  one.erase("seconds");
  two.erase("seconds");
  EXPECT_EQ(one, two);
  EXPECT_TRUE(read_text(in_folder("alone")) == read_text(in_folder("together")));
}

TEST_F(TrainerRanks, EndIfOneImageNeverArrives) {
  // Either rank may time out first: the one that waits for the image, or the one that waits for
  // that rank.
  EXPECT_THAT(train_with_pipes(1).err, HasSubstr("train.rank_timeout"));
}

TEST_F(TrainerRanks, EndIfNoImageArrives) {
  const auto log = train_with_pipes(8).err;
  EXPECT_THAT(line_with(log, "train.rank_timeout"),
              AllOf(HasSubstr("'decode'"), HasSubstr(data_.string())))
      << log;
}

}  // namespace
}  // namespace millrace::testing
