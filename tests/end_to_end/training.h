// Trainings with the real executable, and what they leave.
#pragma once

#include "tests/cli/trainer.h"

namespace millrace::testing {

class Training : public Trainer {
 protected:
  /// The checkpoint that a run in `output` ended with.
  static fs::path last_checkpoint(const fs::path& output) {
    fs::path newest;
    for (const auto& run : fs::directory_iterator(output)) {
      if (!fs::exists(run.path() / "checkpoints")) continue;  // killed before the first one
      for (const auto& entry : fs::directory_iterator(run.path() / "checkpoints"))
        if (entry.is_directory() && !entry.is_symlink() && entry.path() > newest)
          newest = entry.path();
    }
    return newest;
  }

  /// What `eval` says of a checkpoint on the split it was trained on.
  Json training_scores(std::vector<std::string> arguments, const fs::path& checkpoint) const {
    arguments.insert(arguments.begin() + 1,
                     {"--weights", (checkpoint / "model.safetensors").string(), "--json"});
    const auto eval = trainer(arguments);
    EXPECT_EQ(eval.exit_code, 0) << eval.err;
    return eval.json();
  }

  /// Its box and mask AP.
  std::pair<double, double> training_ap(std::vector<std::string> arguments,
                                        const fs::path& checkpoint) const {
    const auto scores = training_scores(std::move(arguments), checkpoint);
    return {scores["bbox"]["stats"][0], scores["segm"]["stats"][0]};
  }

  /// Two pictures to be learned by heart in so many epochs, and how.
  std::vector<std::string> by_heart(int epochs) const {
    const auto data = in_folder("data").string();
    if (!fs::exists(data)) {
      EXPECT_EQ(trainer({"sample", "--out", data, "--train", "2", "--val", "1"}).exit_code, 0);
    }
    const auto every = ".every=\"" + std::to_string(epochs) + " epochs\"";
    return {"data.root=\"" + data + "\"", "data.val=\"train2017\"",
            "data.batch_size=2",          "data.flip=0.0",
            "data.aspect_grouping=false",
            "data.test_short_side=0",  // as trained
            "data.test_max_side=0",       "train.epochs=" + std::to_string(epochs),
            "schedule.warmup_steps=20",   "schedule.warmup_epochs=0.0",
            "callbacks.evaluate" + every, "callbacks.checkpoint" + every};
  }
};

/// `command config --set a --set b ...`
inline std::vector<std::string> with_settings(std::vector<std::string> command,
                                              const std::vector<std::string>& settings) {
  for (const auto& setting : settings) command.insert(command.end(), {"--set", setting});
  return command;
}

}  // namespace millrace::testing
