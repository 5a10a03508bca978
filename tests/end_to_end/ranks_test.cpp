// The real executable under mpirun: however many ranks share the steps, they are the same steps.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

class RanksRun : public Training {
 protected:
  RanksRun() {
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);  // as containers do
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }

  struct Run {
    std::vector<std::map<std::string, double>> steps;  // losses and what else metrics.jsonl has
    std::string weights;
  };

  /// Twenty steps of four images, shared by so many ranks. The flow of data groups, flips and chooses sizes.
  Run train(int ranks, const std::string& name, std::vector<std::string> more = {}) const {
    const auto output = in_folder(name);
    more.insert(more.end(),
                {"train.max_steps=20", "train.epochs=20", "train.threads=1",
                 "schedule.warmup_steps=2", "data.short_side=[96, 128]", "data.max_side=160",
                 "data.batch_size=" + std::to_string(4 / ranks), "model.norm=gn",
                 "model.fpn_norm=gn", "callbacks.evaluate.enabled=false",
                 "callbacks.pictures.enabled=false", "callbacks.log.every=\"1 steps\""});
    auto command = on(in_folder("data"), {"run", "--output", output.string()}, more);
    Outcome outcome;
    if (ranks == 1) {
      outcome = trainer(command);
    } else {
      command.insert(command.begin(),
                     {"--oversubscribe", "-np", std::to_string(ranks), MILLRACE_TRAINER});
      outcome = run(MILLRACE_MPIEXEC, command);
    }
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    Run result{{}, read_text(last_checkpoint(output) / "model.safetensors")};
    for (const auto& folder : fs::directory_iterator(output)) {
      std::istringstream lines(read_text(folder.path() / "metrics.jsonl"));
      for (std::string line; std::getline(lines, line);) {
        auto& step = result.steps.emplace_back();
        const auto scalars = Json::parse(line);
        for (const auto& [key, value] : scalars.items())
          if (value.is_number() && !key.starts_with("time")) step[key] = value;
      }
    }
    return result;
  }
};

/// Sums in another order round otherwise. From random values some proposals tie but for rounding, and from the third
/// step on other ones are sampled; tests/models/ranks_test.cpp compares twenty steps of detectors without such ties.
constexpr double kRounding = 1e-4;
constexpr std::size_t kStepsAlike = 2;

TEST_F(RanksRun, OneTwoAndFourTrainAlikeAndTheSameNumberTwiceToTheByte) {
  make_data();
  const auto alone = train(1, "1");
  ASSERT_GE(alone.steps.size(), 20U);
  double most = 0;
  for (const int ranks : {2, 4}) {
    const auto together = train(ranks, std::to_string(ranks));
    ASSERT_EQ(together.steps.size(), alone.steps.size());
    for (std::size_t i = 0; i < kStepsAlike; ++i)
      for (const auto& [name, value] : alone.steps[i]) {
        ASSERT_TRUE(together.steps[i].contains(name)) << name;
        const auto off =
            std::abs(together.steps[i].at(name) - value) / std::max(std::abs(value), 1e-2);
        EXPECT_LT(off, kRounding) << ranks << " ranks, step " << i + 1 << ", " << name;
        most = std::max(most, off);
      }
    if (ranks == 2) {
      const auto again = train(2, "again");
      EXPECT_TRUE(again.weights == together.weights);
      EXPECT_EQ(again.steps, together.steps);
    }
  }
  std::printf("largest relative difference: %.2g\n", most);
}

}  // namespace
}  // namespace millrace::testing
