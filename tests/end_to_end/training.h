// Training runs of the real executable, and their results.
#pragma once

#include "tests/cli/trainer.h"

namespace millrace::testing {

/// Returns the newest checkpoint of the runs in `output`.
inline fs::path last_checkpoint(const fs::path& output) {
  fs::path newest;
  for (const auto& run : fs::directory_iterator(output)) {
    if (!fs::exists(run.path() / "checkpoints")) continue;  // killed before its first checkpoint
    for (const auto& entry : fs::directory_iterator(run.path() / "checkpoints"))
      if (entry.is_directory() && !entry.is_symlink() && entry.path() > newest)
        newest = entry.path();
  }
  return newest;
}

inline std::string last_weights(const fs::path& output) {
  return read_text(last_checkpoint(output) / "model.safetensors");
}

class Training : public Trainer {
 protected:
  /// Trains, runs `eval` on the last checkpoint with the same settings, and returns its scores.
  Json scores_after(const std::string& config, const Words& settings) const {
    const auto output = in_folder("runs");
    fs::remove_all(output);
    successful(trainer(with_settings({"run", config, "--out", output}, settings)));
    const auto weights = last_checkpoint(output) / "model.safetensors";
    const Words eval = {"eval", config, "--weights", weights, "--json"};
    return successful(trainer(with_settings(eval, settings))).json();
  }

  static double ap(const Json& scores, const char* iou) { return scores[iou]["stats"][0]; }

  /// Returns settings that overfit two images in `epochs` epochs.
  Words overfitting(int epochs) const {
    const auto data = in_folder("data");
    if (!fs::exists(data))
      successful(trainer({"sample", "--out", data, "--train", "2", "--val", "1"}));
    const auto every = ".every='" + std::to_string(epochs) + " epochs'";
    return {setting("data.root", data),
            "data.val='train2017'",
            "data.batch_size=2",
            "data.flip=0.0",
            "data.aspect_grouping=false",
            "data.test_short_side=0",  // as in training
            "data.test_max_side=0",
            "model.test.aug_flip=false",
            "train.epochs=" + std::to_string(epochs),
            "schedule.warmup=20 steps",
            "callbacks.evaluate" + every,
            "callbacks.checkpoint" + every};
  }
};

}  // namespace millrace::testing
