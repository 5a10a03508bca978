// Training runs under mpirun with train.micro_batch, and their results, which must not depend on
// the number of ranks.
#pragma once

#include <algorithm>

#include "tests/end_to_end/training.h"
#include "tests/faults/mpirun.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {

class SameBytes : public Mpirun {
 protected:
  struct Recipe {
    std::string file;
    Words settings;
    int images = 4;  // per step
    int steps = 4;
  };

  /// Returns settings that train small models on the sample data and evaluate every two steps.
  Words on_samples(const Words& more = {}) const {
    return Words{setting("data.root", in_folder("data")), "data.short_side=[64, 96]",
                 "data.max_side=128", "callbacks.evaluate.every='2 steps'"} +
           more;
  }

  Words command(const Recipe& recipe, int ranks, const fs::path& output) const {
    return with_settings(
        {"run", recipe.file, "--resume=auto", "--out", output},
        Words{"data.batch_size=" + std::to_string(recipe.images / ranks), "data.test_batch_size=1",
              "train.micro_batch=1", "train.threads=1", "train.epochs=1000",
              "train.max_steps=" + std::to_string(recipe.steps), "schedule.warmup='2 steps'",
              "callbacks.log.every='1 steps'", "callbacks.checkpoint.every='1 steps'",
              "callbacks.checkpoint.keep=2", "callbacks.pictures.enabled=false"} +
            recipe.settings);
  }

  /// Returns the results that must not depend on the number of ranks: weights, momentum, metrics
  /// without times, detections.
  static std::vector<std::string> deterministic_results(const fs::path& output) {
    const auto checkpoint = last_checkpoint(output);
    const auto run = checkpoint.parent_path().parent_path();
    std::vector<std::string> all = {read_text(checkpoint / "model.safetensors"),
                                    read_text(checkpoint / "optimizer.safetensors"),
                                    metrics_without_times(run / "metrics.jsonl")};
    std::vector<fs::path> found;
    if (fs::exists(run / "detections"))
      for (const auto& file : fs::directory_iterator(run / "detections")) found.push_back(file);
    std::ranges::sort(found);
    for (const auto& file : found) all.push_back(read_text(file));
    return all;
  }

  std::vector<std::string> train(const Recipe& recipe, int ranks, const std::string& name) const {
    const auto output = in_folder(name);
    const auto own = command(recipe, ranks, output);
    successful(ranks == 1 ? trainer(own) : Mpirun::ranks(ranks, MILLRACE_TRAINER, own));
    return deterministic_results(output);
  }

  void expect_same(const Recipe& recipe, const std::vector<int>& numbers) const {
    const auto alone = train(recipe, 1, "1");
    ASSERT_GE(alone.size(), 3);
    for (const int ranks : numbers)
      EXPECT_TRUE(train(recipe, ranks, std::to_string(ranks)) == alone)
          << recipe.file << " with " << ranks << " ranks";
    for (const auto& folder : fs::directory_iterator(in_folder(".")))
      if (folder.path().filename() != "data") fs::remove_all(folder);
  }
};

}  // namespace millrace::testing
