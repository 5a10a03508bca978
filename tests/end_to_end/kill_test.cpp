// A training run that is killed at random times and resumed writes the same bytes as an
// uninterrupted run.
#include <csignal>
#include <random>

#include "tests/end_to_end/training.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {
namespace {

class KilledRun : public Training {
 protected:
  fs::path data_ = make_data();

  Words command(const fs::path& output) const {
    return on(
        data_, {"run", "--resume=auto", "--out", output},
        {"data.short_side=64", "data.max_side=96", "train.epochs=6", "schedule.warmup=4 steps",
         "callbacks.log.every=\"1 steps\"", "callbacks.checkpoint.every=\"1 steps\"",
         "callbacks.checkpoint.keep=2", "callbacks.evaluate.every=\"4 steps\"",
         "callbacks.evaluate.mode=\"background\"", "callbacks.pictures.enabled=false"});
  }

  /// Returns the results that must not depend on when the process was killed: weights, momentum,
  /// metrics without times, detections.
  static std::string deterministic_results(const fs::path& output) {
    const auto run = last_checkpoint(output).parent_path().parent_path();
    return last_weights(output) + read_text(last_checkpoint(output) / "optimizer.safetensors") +
           read_text(run / "detections" / "step-000004.json") +
           metrics_without_times(run / "metrics.jsonl");
  }

  /// Kills training runs until `instants` kills at random times are done; resumes each run until it
  /// ends.
  void kill_at(int instants, unsigned seed) const {
    const auto clock = [] { return std::chrono::steady_clock::now(); };
    const auto began = clock();
    const auto whole = successful(trainer(command(in_folder("whole"))));
    const auto expected = deterministic_results(in_folder("whole"));
    const auto all = std::chrono::duration_cast<std::chrono::microseconds>(clock() - began).count();

    std::mt19937_64 random(seed);
    std::cout << "seed " << seed << ", a whole run takes " << all / 1000 << " ms; killed after";
    for (int kills = 0, training = 0; kills < instants; ++training) {
      const auto output = in_folder("killed-" + std::to_string(training));
      for (bool done = false; !done;) {
        const auto instant = std::uniform_int_distribution<long>(all / 4, all)(random);
        const auto child = start(MILLRACE_TRAINER, command(output));
        const auto deadline = clock() + std::chrono::microseconds(instant);
        while (clock() < deadline && !done) {
          done = ::waitpid(child, nullptr, WNOHANG) == child;
          ::usleep(1'000);
        }
        if (done) break;
        ::kill(child, SIGKILL);
        finish(child);
        ++kills;
        std::cout << " " << instant / 1000 << std::flush;
      }
      ASSERT_TRUE(deterministic_results(output) == expected)
          << "run " << training << ", seed " << seed;
      fs::remove_all(output);
    }
    std::cout << " ms\n";
  }
};

TEST_F(KilledRun, WritesSameBytesAfterThirtyKills) { kill_at(30, 1); }

}  // namespace
}  // namespace millrace::testing
