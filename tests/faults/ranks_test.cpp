// If a rank throws, is killed or hangs, all ranks end, one reports the reason, and a resumed run
// equals one that never failed.
#include "tests/faults/mpirun.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRanks = 3;

/// Matches the reason recorded by a rank that waits for a dead rank: mpirun ends it, or it times
/// out first, at the sixth step.
const auto is_of_one_that_waits = ::testing::AnyOf("SIGTERM", HasSubstr("step 6"));

class Faults : public Mpirun {
 protected:
  Outcome train(const std::string& run, const std::string& fault) const {
    fs::create_directory(in_folder(run));
    return ranks(kRanks, MILLRACE_FAULTS_RANKS, {in_folder(run).string(), fault});
  }

  std::vector<std::string> what_is_left(const std::string& run) const {
    std::vector<std::string> left;
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto process = read_text(in_folder(run) / ("pid-" + std::to_string(rank)));
      if (!ends(std::stoi(process))) left.push_back(process);
    }
    return left;
  }

  /// Returns the last events that a rank has written.
  Json events(const std::string& run, int rank) const {
    return read_json(in_folder(run) / "events" / ("rank-000" + std::to_string(rank) + ".json"))
        .at("traceEvents");
  }
  /// Returns the recorded reason for writing the events.
  std::string why(const std::string& run, int rank) const {
    return events(run, rank).at(0).at("args").at("why");
  }
  /// Returns "KIND NAME" of each event that was active when the events were written.
  Words went_on(const std::string& run, int rank) const {
    Words names;
    for (const auto& event : events(run, rank))
      if (event.at("ph") == "B")
        names.push_back(event.at("cat").get<std::string>() + " " +
                        event.at("name").get<std::string>());
    return names;
  }

  /// Returns a regular expression for a rank's name.
  static std::string rank_pattern(int number) {
    return "rank " + std::to_string(number) + " \\(" + host() + "\\)";
  }

  std::string bytes(const std::string& run) const {
    const auto latest = in_folder(run) / "checkpoints" / "latest";
    return read_text(latest / "model.safetensors") + read_text(latest / "optimizer.safetensors");
  }

  /// Expects a fault to end as required: with a message, no process left, and, once resumed, the
  /// bytes of a run without the fault.
  void expect_end(const std::string& fault, const ::testing::Matcher<std::string>& message) const {
    const auto end = train("faulty", fault);
    EXPECT_NE(end.exit_code, 0);
    EXPECT_THAT(end.err, message);
    EXPECT_THAT(end.err, Not(HasSubstr("MPI_ABORT")));
    EXPECT_THAT(what_is_left("faulty"), ::testing::IsEmpty());
    const auto resumed = train("faulty", "none");
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    ASSERT_EQ(train("whole", "none").exit_code, 0);
    EXPECT_TRUE(bytes("faulty") == bytes("whole"));
  }
};

TEST_F(Faults, ThrowingStepEndsAllRanks) {
  expect_end("step", ContainsRegex(rank_pattern(2) + "[^\n]*losses fail on purpose"));
  EXPECT_THAT(why("faulty", 2), HasSubstr("losses fail on purpose"));
}

TEST_F(Faults, ThrowingCallbackEndsAllRanks) {
  expect_end("callback", ContainsRegex(rank_pattern(2) +
                                       "[^\n]*'faulty'[^\n]*before_step[^\n]*fails on purpose"));
}

TEST_F(Faults, BrokenImageEndsAllRanks) {
  expect_end("data", HasSubstr(rank(2) + ": photo.jpg: not an image"));
}

TEST_F(Faults, KilledRankEndsAllRanks) {
  expect_end("kill", ContainsRegex("rank [01] \\(" + host() + "\\)[^\n]*SIGTERM[^\n]*step 6"));
  for (const int rank : {0, 1}) {
    EXPECT_THAT(why("faulty", rank), is_of_one_that_waits);
    EXPECT_THAT(went_on("faulty", rank), Contains(StartsWith("exchange ")));
  }
  EXPECT_FALSE(fs::exists(in_folder("faulty") / "events" / "rank-0002.json"));
}

TEST_F(Faults, CrashedRankWritesItsEvents) {
  const auto end = train("crash", "crash");
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(what_is_left("crash"), ::testing::IsEmpty());
  EXPECT_EQ(why("crash", 2), "SIGSEGV");
  EXPECT_THAT(went_on("crash", 2), Contains(AllOf(StartsWith("callback "), EndsWith("faulty"))));
  EXPECT_THAT(why("crash", 0), is_of_one_that_waits);
  EXPECT_THAT(went_on("crash", 0), Contains(StartsWith("exchange ")));
}

TEST_F(Faults, HangingRankEndsAllRanks) {
  for (const std::string fault : {"stall", "late"}) {
    const auto end = train(fault, fault);
    EXPECT_NE(end.exit_code, 0);
    EXPECT_THAT(line_with(end.err, "train.rank_timeout"),
                AllOf(HasSubstr(rank(0)), HasSubstr(rank(2)), HasSubstr("step 6")))
        << end.err;
    EXPECT_THAT(what_is_left(fault), ::testing::IsEmpty());
    EXPECT_THAT(why(fault, 0), HasSubstr("step 6"));
    EXPECT_EQ(why(fault, 2), "SIGTERM");  // mpirun resumes a stopped process to end it
    if (fault == "late") {
      EXPECT_THAT(went_on(fault, 2), Contains(StartsWith("data ")));
    }
  }
}

TEST_F(Faults, LateRanksDoNotChangeBytes) {
  for (const std::string name : {"slow", "none"}) {
    const auto end = train(name, name);
    ASSERT_EQ(end.exit_code, 0) << end.err;
  }
  EXPECT_TRUE(bytes("slow") == bytes("none"));
}

/// A signal to mpirun reaches the ranks, which save and end.
TEST_F(Faults, SignalledRanksSaveAndResume) {
  const auto lines = [&] {
    const auto text = read_text(in_folder("stopped") / "metrics.jsonl");
    return std::ranges::count(text, '\n');
  };
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) {
    fs::remove_all(in_folder("stopped"));
    fs::create_directory(in_folder("stopped"));
    const std::vector<std::string> arguments = {in_folder("stopped").string(), "none", "1000000"};
    // The number of seconds after which mpirun kills the ranks once it has forwarded a signal; the
    // default is one.
    const auto child = start_ranks(kRanks, MILLRACE_FAULTS_RANKS, arguments,
                                   {"--mca", "odls_base_sigkill_timeout", "2"});
    while (lines() < 5 && ::kill(child, 0) == 0) ::usleep(5'000);
    ::kill(child, signal);
    const auto end = finish(child);
    EXPECT_EQ(end.exit_code, signal == SIGUSR1 ? 3 : 1) << end.err;
    EXPECT_THAT(what_is_left("stopped"), ::testing::IsEmpty());
    const auto state =
        read_json(in_folder("stopped") / "checkpoints" / "latest" / "state.json").at("state");
    const auto step = state.at("step").get<int>();
    EXPECT_GE(step, 5);
    // Compares with an uninterrupted run of the same number of steps.
    const auto until = std::to_string(step + 7);
    const auto train_on = [&](const std::string& run) {
      fs::create_directories(in_folder(run));
      EXPECT_EQ(
          ranks(kRanks, MILLRACE_FAULTS_RANKS, {in_folder(run).string(), "none", until}).exit_code,
          0);
    };
    train_on("stopped");
    train_on("whole");
    EXPECT_TRUE(bytes("stopped") == bytes("whole"));
    fs::remove_all(in_folder("whole"));
  }
}

}  // namespace
}  // namespace millrace::testing
