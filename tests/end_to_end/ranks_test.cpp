// The real executable under mpirun: the steps are the same for any number of ranks.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/end_to_end/training.h"
#include "tests/faults/mpirun.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {
namespace {

class RanksRun : public Mpirun {
 protected:
  struct Run {
    // losses and the other values of metrics.jsonl
    std::vector<std::map<std::string, double>> steps;
    std::string weights;
    Json cursor;  // after the last image
    std::string log;
  };

  /// Returns settings with group norm, which normalises each image alone, so that results for
  /// different numbers of ranks differ only by rounding.
  static Words group_norm() { return {"model.backbone.norm=gn", "model.fpn.norm=gn"}; }

  /// Trains on `ranks` ranks with four images per step, with grouping, flips and random sizes.
  Run train(int ranks, int steps, const std::string& name, const std::string& recipe,
            const Words& more = group_norm()) const {
    const auto output = in_folder(name);
    const auto command = with_settings(
        Words{"run", recipe, "--out", output} + (fs::exists(output) ? Words{"--resume"} : Words{}),
        kTrainOnly +
            Words{setting("data.root", in_folder("data")), "data.short_side=[96, 128]",
                  "data.max_side=160", "data.batch_size=" + std::to_string(4 / ranks),
                  "model.backbone.width=16", "train.max_steps=" + std::to_string(steps),
                  "train.epochs=20", "train.threads=1", "schedule.warmup=2 steps",
                  "callbacks.log.every='1 steps'"} +
            more);
    const auto outcome =
        successful(ranks == 1 ? trainer(command) : Mpirun::ranks(ranks, MILLRACE_TRAINER, command));
    const auto checkpoint = last_checkpoint(output);
    Run result{{},
               read_text(checkpoint / "model.safetensors"),
               read_json(checkpoint / "state.json")["state"]["cursor"],
               outcome.err};
    for (const auto& folder : fs::directory_iterator(output)) {
      for (const auto& scalars : json_lines(folder.path() / "metrics.jsonl")) {
        auto& step = result.steps.emplace_back();
        for (const auto& [key, value] : scalars.items())
          if (value.is_number() && !key.starts_with("time")) step[key] = value;
      }
    }
    return result;
  }

  /// Compares the metrics of the first `steps` steps, except the metric `besides`.
  static void expect_alike(const Run& is, const Run& expected, std::size_t steps, double most_off,
                           const std::string& besides = "") {
    ASSERT_EQ(is.steps.size(), expected.steps.size());
    ASSERT_GE(is.steps.size(), steps);
    double most = 0;
    for (std::size_t i = 0; i < steps; ++i)
      for (const auto& [name, value] : expected.steps[i]) {
        if (name == besides) continue;
        ASSERT_TRUE(is.steps[i].contains(name)) << name;
        const auto off = std::abs(is.steps[i].at(name) - value) / std::max(std::abs(value), 1e-2);
        EXPECT_LT(off, most_off) << "step " << i + 1 << ", " << name;
        most = std::max(most, off);
      }
    std::printf("largest relative difference: %.2g\n", most);
  }
};

/// With random weights, some proposal scores differ only by rounding, so from the third step
/// different proposals are sampled. tests/models/ranks_test.cpp compares twenty steps without such
/// ties.
TEST_F(RanksRun, MatchesOneProcess) {
  constexpr int kSteps = 6, kStepsAlike = 2;
  make_data();
  const auto alone = train(1, kSteps, "1", "configs/maskrcnn.toml");
  for (const int ranks : {2, 4}) {
    const auto together = train(ranks, kSteps, std::to_string(ranks), "configs/maskrcnn.toml");
    expect_alike(together, alone, kStepsAlike, 1e-5);
    EXPECT_EQ(together.cursor, alone.cursor);
    if (ranks == 4) continue;
    const auto again = train(2, kSteps, "again", "configs/maskrcnn.toml");
    EXPECT_TRUE(again.weights == together.weights);
    EXPECT_EQ(again.steps, together.steps);
  }
}

/// RetinaNet does not sample by score, and a learning rate this small does not amplify rounding, so
/// different images would show in any step. The gradient norm is not compared, since it jumps where
/// the input of a ReLU is zero.
TEST_F(RanksRun, UsesSameImagesIfRankCountChanges) {
  make_data();
  const auto recipe = "configs/retinanet.toml";
  auto small = group_norm();
  small.emplace_back("optimizer.lr=1e-6");
  const auto alone = train(1, 20, "alone", recipe, small);
  train(2, 7, "resumed", recipe, small);
  train(4, 13, "resumed", recipe, small);
  const auto resumed = train(1, 20, "resumed", recipe, small);
  expect_alike(resumed, alone, 20, 1e-5, "gradient_norm");
  EXPECT_EQ(resumed.cursor, alone.cursor);
}

/// With random weights, batch norm amplifies rounding the most, hence the wide tolerance; with
/// statistics per rank, losses would differ by tens of percent.
TEST_F(RanksRun, WarnsAboutPerRankBatchNorm) {
  make_data();
  const auto recipe = "configs/maskrcnn.toml";
  const auto alone = train(1, 2, "alone", recipe, {});
  const auto together = train(2, 2, "together", recipe, {});
  expect_alike(together, alone, 1, 2e-2);
  EXPECT_THAT(together.log, Not(HasSubstr("model.backbone.norm")));
  const auto by_rank = train(2, 1, "by_rank", recipe, {"model.backbone.norm=bn"});
  EXPECT_THAT(by_rank.log, HasSubstr("model.backbone.norm"));
}

}  // namespace
}  // namespace millrace::testing
