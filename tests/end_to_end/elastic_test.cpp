// Runs scripts/launch/elastic on hosts that fail and return: the training run uses the same images
// and writes the same bytes as an undisturbed run.
#include <algorithm>
#include <map>
#include <random>
#include <regex>
#include <set>

#include "tests/cli/served.h"
#include "tests/end_to_end/hosts.h"
#include "tests/end_to_end/training.h"
#include "tests/faults/mpirun.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {
namespace {

/// Hosts 0 to kTraining - 1 run one rank each; the last host runs the launcher.
constexpr int kTraining = 4;
constexpr int kLauncher = kTraining;

class Elastic : public Mpirun {
 protected:
  void SetUp() override {
    if (!hosts_.works()) GTEST_SKIP() << kNoHosts;
    std::string list;
    for (int host = 0; host < kTraining; ++host) {
      turn_on(host);
      list += Hosts::address(host) + " slots=1\n";
    }
    write_text(in_folder("hosts"), list);
  }

  void turn_on(int host) {
    hosts_.link(host, true);
    const auto serve = hosts_.on_host(host, {"python3", fs::absolute(kRsh), "serve"});
    on_[host] = std::make_unique<Served>(serve, in_folder("host-" + std::to_string(host)));
  }
  /// Disconnects a host without closing its connections, and kills its processes.
  void turn_off(int host) {
    hosts_.link(host, false);
    on_.erase(host);
  }

  /// Returns the command of a run. Callers set data.batch_size so that a step has four images.
  Words run(const std::string& output, const Words& more) const {
    return on(data_, {"run", "--out", in_folder(output)},
              kTrainOnly +
                  Words{"data.test_batch_size=1", "data.short_side=64", "data.max_side=96",
                        "train.micro_batch=1", "train.threads=1", "train.epochs=100000",
                        "callbacks.log.every='1 steps'", "callbacks.ledger.enabled=true"} +
                  more);
  }

  /// Starts the launcher with a training run of unlimited length.
  pid_t launch(const Words& more) const {
    const auto agent = "python3 " + fs::absolute(kRsh).string();
    Words command = {
        "scripts/launch/elastic", "--hosts", in_folder("hosts"), "--agent", agent, "--grace", "6"};
    for (const auto* tcp : {"oob_tcp_if_include", "btl_tcp_if_include"})
      command = command + Words{"--mca", tcp, "eth0"};
    command = command + Words{"--mca", "orte_tmpdir_base", in_folder("."), "--"};
    ::setenv("MILLRACE_TRAINER", MILLRACE_TRAINER, 1);
    command = hosts_.beside(kLauncher, command + run("runs", Words{"data.batch_size=1"} + more));
    return start(command[0], {command.begin() + 1, command.end()});
  }

  std::string log() const { return read_text(in_folder("stderr")); }
  /// Returns the number of occurrences of a string in the logs of the launcher and the ranks.
  int times(const std::string& text) const {
    const auto all = log();
    int found = 0;
    for (auto at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
    return found;
  }
  /// Returns the name of the newest checkpoint on disk; empty if none was saved.
  fs::path saved() const {
    std::error_code missing;
    return fs::read_symlink(in_folder("runs") / "maskrcnn-1" / "checkpoints" / "latest", missing);
  }
  /// Returns the step of the first checkpoint that the log reports as resumed; -1 if none.
  std::int64_t resumed_step() const {
    std::smatch found;
    const auto all = log();
    return std::regex_search(all, found, std::regex("resum[a-z]* [^\n]*step ([0-9]+)"))
               ? std::stoll(found[1])
               : -1;
  }
  std::vector<Json> ledger(const std::string& output) const {
    return json_lines(in_folder(output) / "maskrcnn-1" / "ledger.jsonl");
  }

  /// Returns the process ids of the ranks on all hosts.
  std::vector<pid_t> ranks_there() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto words = read_text(entry.path() / "cmdline");
      if (words.starts_with(MILLRACE_TRAINER) && words.find(in_folder("runs")) != std::string::npos)
        found.push_back(std::stoi(name));
    }
    return found;
  }

  /// Returns the image ids of each step, in order. Expects each step exactly once, from step 1.
  std::vector<std::vector<std::int64_t>> images(const std::string& output) const {
    std::vector<std::vector<std::int64_t>> steps;
    for (const auto& line : ledger(output)) {
      EXPECT_EQ(line.at("step"), steps.size() + 1);
      auto& step = steps.emplace_back();
      for (const auto& batch : line.at("images"))
        for (const auto& id : batch) step.push_back(id);
    }
    return steps;
  }

  /// Stops the launcher and compares the result with an undisturbed one-process run of the same
  /// number of steps.
  void expect_undisturbed(pid_t launcher) const {
    ::kill(launcher, SIGTERM);
    const auto end = finish(launcher);
    EXPECT_EQ(end.exit_code, 3) << end.err;
    EXPECT_THAT(ranks_there(), IsEmpty());
    const auto taken = images("runs");
    std::cout << taken.size() << " steps, " << times(" ranks on ") << " attempts\n";
    successful(trainer(run("whole", {"data.batch_size=4", "callbacks.checkpoint.every='1000 steps'",
                                     "train.max_steps=" + std::to_string(taken.size())})));
    EXPECT_TRUE(taken == images("whole"));
    const auto disturbed = last_checkpoint(in_folder("runs")),
               whole = last_checkpoint(in_folder("whole"));
    ASSERT_EQ(disturbed.filename(), whole.filename());
    for (const auto* file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_TRUE(read_text(disturbed / file) == read_text(whole / file)) << file;
  }

  /// For the given time, kills ranks, kills or disconnects hosts, and restores them.
  void disturb_for(std::chrono::seconds time, unsigned seed) {
    const auto launcher = launch({"callbacks.checkpoint.every='2 steps'"});
    std::mt19937 random(seed);
    const auto below = [&](std::size_t end) { return random() % end; };
    std::set<int> off, cut;
    std::cout << "seed " << seed << ":";
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      // Usually waits for a new checkpoint first; sometimes ranks may still be starting.
      if (const auto before = saved(); below(4) > 0) {
        ASSERT_TRUE(wait_until([&] { return saved() != before; })) << log();
      }
      ::usleep(static_cast<unsigned>(below(4'000'000)));
      const auto host = static_cast<int>(below(kTraining));
      const auto act = below(3);
      if (off.contains(host)) {
        turn_on(host);
        off.erase(host);
        std::cout << " +" << host;
      } else if (cut.contains(host)) {
        hosts_.link(host, true);
        cut.erase(host);
        std::cout << " +" << host;
      } else if (const auto ranks = ranks_there(); act == 0 && !ranks.empty()) {
        ::kill(ranks[below(ranks.size())], SIGKILL);
        std::cout << " rank";
      } else if (off.size() + cut.size() + 1 == kTraining) {
        continue;  // at least one host stays on
      } else if (act == 1) {
        turn_off(host);
        off.insert(host);
        std::cout << " -" << host;
      } else {
        hosts_.link(host, false);
        cut.insert(host);
        std::cout << " /" << host;
      }
      std::cout << std::flush;
      ASSERT_EQ(::kill(launcher, 0), 0) << log();
    }
    std::cout << "\n";
    for (const int host : off) turn_on(host);
    for (const int host : cut) hosts_.link(host, true);
    // Waits until all hosts have rejoined.
    const auto last_ranks = [&] {
      const auto all = log();
      const auto last = all.rfind(" ranks on ");
      return all.substr(last - 1, 1);
    };
    ASSERT_TRUE(wait_until([&] { return last_ranks() == "4"; })) << log();
    const auto before = saved();
    ASSERT_TRUE(wait_until([&] { return saved() != before; })) << log();
    expect_undisturbed(launcher);
  }

  static constexpr const char* kRsh = "tests/end_to_end/rsh.py";
  fs::path data_ = make_data();
  Hosts hosts_{kTraining + 1};
  std::map<int, std::unique_ptr<Served>> on_;
};

TEST_F(Elastic, UsesEveryImageOnceDespiteFailures) {
  // MILLRACE_ELASTIC_SECONDS and MILLRACE_ELASTIC_SEED set a longer time or a different seed.
  const auto* seconds = std::getenv("MILLRACE_ELASTIC_SECONDS");
  const auto* seed = std::getenv("MILLRACE_ELASTIC_SEED");
  disturb_for(std::chrono::seconds(seconds ? std::stoi(seconds) : 90),
              seed ? static_cast<unsigned>(std::stoul(seed)) : 1);
}

/// The disk has only the checkpoint saved at the start, but a surviving host holds the lost host's
/// memory checkpoint.
TEST_F(Elastic, ResumesFromMemoryOfAnotherHost) {
  const auto launcher =
      launch({"callbacks.checkpoint.every='1000 steps'", "callbacks.checkpoint.at_start=true",
              "callbacks.memory_checkpoint.enabled=true"});
  ASSERT_TRUE(wait_until([&] { return !saved().empty(); })) << log();
  ASSERT_TRUE(wait_until([&] { return ledger("runs").size() >= 5; })) << log();
  turn_off(0);  // the host of rank 0
  const auto done = std::ssize(ledger("runs"));
  ASSERT_TRUE(wait_until([&] { return resumed_step() >= 0; })) << log();
  const auto resumed = resumed_step();
  EXPECT_GE(resumed, done - 2) << log();
  EXPECT_THAT(log(), ContainsRegex("memory[^\n]*rank [0-9]"));
  ASSERT_TRUE(wait_until([&] { return std::ssize(ledger("runs")) >= resumed + 2; })) << log();
  expect_undisturbed(launcher);
}

}  // namespace
}  // namespace millrace::testing
