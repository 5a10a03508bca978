// `trainer status` of several ranks, some of which hang.
#include <sys/stat.h>

#include <set>

#include "tests/faults/mpirun.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

class RanksStatus : public Mpirun {
 protected:
  fs::path data_ = make_data();
  fs::path run_ = in_folder("runs") / "maskrcnn-1";

  /// Starts a training run on two ranks, whose output goes to different files from those of
  /// `trainer`.
  pid_t train(const Words& more = {}) const {
    return spawn(
        Words{MILLRACE_MPIEXEC, "--oversubscribe", "-np", "2", MILLRACE_TRAINER} +
            on(data_, {"run", "--out", in_folder("runs")},
               kTrainOnly + Words{"data.short_side=64", "data.max_side=96", "train.epochs=100000"} +
                   more),
        in_folder("log.out"), in_folder("log"), O_TRUNC);
  }

  /// Waits until the status satisfies the condition; last_ keeps the last status read.
  template <class Condition>
  bool wait_for_status(Condition condition) {
    return wait_until([&] {
      if (!fs::exists(run_ / "record.json")) return false;
      last_ = successful(trainer({"status", run_, "--json"})).json();
      verdict_ = last_["verdict"];
      return condition();
    });
  }
  /// Returns true if the last status reports that the rank is in `where`: "exchange", "data", ...
  bool is_in(std::size_t rank, const char* where) {
    return last_["ranks"][rank]["status"]["where"] == where;
  }
  Json last_;
  std::string verdict_;
};

TEST_F(RanksStatus, NamesStoppedRank) {
  const pid_t mpirun = train();
  const auto trains = [&] {
    return last_["state"] == "training" && last_["ranks"][0]["answers"] == true &&
           last_["ranks"][1]["answers"] == true && last_["ranks"][1]["status"]["step"] >= 2 &&
           verdict_.find(rank(1)) == std::string::npos;
  };
  ASSERT_TRUE(wait_for_status(trains)) << last_ << read_text(in_folder("log"));
  for (const auto& rank : last_["ranks"]) {
    EXPECT_EQ(rank["host"], host());
    EXPECT_GT(rank["status"]["sent_bytes"], 0);
    EXPECT_GT(rank["status"]["received_bytes"], 0);
  }
  const pid_t victim = last_["ranks"][1]["process"];
  ASSERT_EQ(::kill(victim, SIGSTOP), 0);
  std::string exchange;
  ASSERT_TRUE(wait_for_status([&] {
    const auto& waits = last_["ranks"][0]["status"]["exchange"];
    if (!waits.is_object() || last_["ranks"][1]["answers"] != false) return false;
    exchange = waits["what"];
    return verdict_.find(exchange) != std::string::npos;
  })) << last_;
  EXPECT_THAT(verdict_, AllOf(HasSubstr(rank(1)), Not(HasSubstr(rank(0))),
                              ContainsRegex(exchange + "[^\n]*step [0-9]+")));
  EXPECT_EQ(last_["ranks"][0]["answers"], true);
  EXPECT_EQ(last_["ranks"][0]["status"]["where"], "exchange");
  EXPECT_EQ(last_["ranks"][1]["answers"], false);
  // The status shows the last values that the rank wrote, and their age.
  EXPECT_GE(last_["ranks"][1]["heard_s"], 0);
  EXPECT_GT(last_["ranks"][1]["status"]["memory_bytes"], 0);

  ASSERT_EQ(::kill(victim, SIGCONT), 0);
  EXPECT_TRUE(wait_for_status(trains)) << last_;
  ::kill(mpirun, SIGUSR1);
  EXPECT_EQ(finish(mpirun).exit_code, 3) << read_text(in_folder("log"));
}

// mpirun ends the other rank, which records the signal.
TEST_F(RanksStatus, NamesCrashedRank) {
  const pid_t mpirun = train();
  ASSERT_TRUE(wait_for_status([&] {
    return last_["state"] == "training" && last_["ranks"][1]["status"]["step"] >= 2;
  })) << last_
      << read_text(in_folder("log"));
  ::kill(last_["ranks"][1]["process"].get<pid_t>(), SIGSEGV);
  finish(mpirun);
  EXPECT_TRUE(wait_for_status([&] { return last_["state"] == "broken"; })) << last_;
  EXPECT_THAT(verdict_, AllOf(HasSubstr(rank(1)), HasSubstr("SIGSEGV"))) << last_;
}

TEST_F(RanksStatus, NamesRankOthersWaitFor) {
  // One image never arrives: the rank that needs it waits for data, and the other rank waits for
  // that rank.
  std::set<fs::path> images;
  for (const auto& image : fs::directory_iterator(data_ / "train2017")) images.insert(image);
  fs::remove(*images.begin());
  ASSERT_EQ(::mkfifo(images.begin()->c_str(), 0600), 0);
  // With little prefetching; otherwise the other rank's only thread might also reach the image.
  const pid_t mpirun = train({"data.in_flight=4"});
  std::size_t late = 0;
  ASSERT_TRUE(wait_for_status([&] {
    late = is_in(0, "data") ? 0 : 1;
    return is_in(late, "data") && is_in(1 - late, "exchange") &&
           verdict_.find(images.begin()->string()) != std::string::npos;
  })) << last_
      << read_text(in_folder("log"));
  EXPECT_THAT(verdict_,
              AllOf(HasSubstr(rank(static_cast<int>(late))),
                    Not(HasSubstr(rank(static_cast<int>(1 - late)))), HasSubstr("'decode'")));
  ::kill(mpirun, SIGKILL);
  for (const auto& rank : last_["ranks"]) ::kill(rank["process"].get<pid_t>(), SIGKILL);
  finish(mpirun);
}

TEST_F(RanksStatus, NamesKilledRank) {
  const pid_t mpirun = train();
  ASSERT_TRUE(wait_for_status([&] {
    return last_["state"] == "training" && last_["ranks"][1]["status"]["step"] >= 2;
  })) << last_
      << read_text(in_folder("log"));
  // mpirun is stopped first, since it would end the other rank.
  ASSERT_EQ(::kill(mpirun, SIGSTOP), 0);
  ::kill(last_["ranks"][1]["process"].get<pid_t>(), SIGKILL);
  EXPECT_TRUE(wait_for_status([&] { return last_["ranks"][1]["answers"] == false; })) << last_;
  EXPECT_EQ(last_["state"], "training");
  EXPECT_THAT(verdict_, AllOf(HasSubstr(rank(1)), Not(HasSubstr(rank(0)))));
  ASSERT_EQ(::kill(mpirun, SIGCONT), 0);
  finish(mpirun);
  EXPECT_TRUE(wait_for_status([&] { return last_["state"] == "broken"; })) << last_;
  EXPECT_THAT(verdict_, AllOf(HasSubstr(rank(1)), Not(HasSubstr(rank(0))))) << last_;
}

TEST_F(RanksStatus, ShowsRanksOfLastLaunch) {
  const auto words = [&](const std::string& steps, const Words& more) {
    return on(data_, Words{"run"} + more,
              kTrainOnly + Words{"data.short_side=64", "data.max_side=96", "train.epochs=100000",
                                 "train.max_steps=" + steps});
  };
  const auto two = ranks(2, MILLRACE_TRAINER, words("2", {"--out", in_folder("runs").string()}));
  ASSERT_EQ(two.exit_code, 0) << two.err;
  ASSERT_TRUE(fs::exists(run_ / "status" / "rank-1.json"));
  successful(trainer(words("4", {"--out", in_folder("runs").string(), "--resume"})));
  last_ = successful(trainer({"status", run_, "--json"})).json();
  ASSERT_EQ(last_["ranks"].size(), 1U) << last_;
  EXPECT_EQ(last_["ranks"][0]["status"]["step"], 4);
  EXPECT_FALSE(fs::exists(run_ / "status" / "rank-1.json"));
}

}  // namespace
}  // namespace millrace::testing
