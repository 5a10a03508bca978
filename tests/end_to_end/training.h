// Trainings with the real executable, and what they leave.
#pragma once

#include "tests/cli/trainer.h"

namespace millrace::testing {

class Training : public Trainer {
 protected:
  /// The checkpoint that a run in `output` ended with.
  static fs::path last_checkpoint(const fs::path& output) {
    fs::path newest;
    for (const auto& run : fs::directory_iterator(output))
      for (const auto& entry : fs::directory_iterator(run.path() / "checkpoints"))
        if (entry.is_directory() && !entry.is_symlink() && entry.path() > newest)
          newest = entry.path();
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
};

/// `command config --set a --set b ...`
inline std::vector<std::string> with_settings(std::vector<std::string> command,
                                              const std::vector<std::string>& settings) {
  for (const auto& setting : settings) command.insert(command.end(), {"--set", setting});
  return command;
}

}  // namespace millrace::testing
