// Trains a plug-in's detector with the real program: uninterrupted, resumed and on several ranks.
#pragma once

#include "tests/cli/trainer.h"

namespace millrace::testing {

class PluginRun : public Trainer {
 protected:
  fs::path data_ = make_data();

  /// Trains the repository's configuration `base`, with `recipe` appended, in the folder `name`;
  /// resumes if the folder exists. Returns the run's folder.
  fs::path train(const std::string& base, const std::string& recipe, const std::string& name,
                 const Words& more, int steps, int ranks = 1) const {
    const auto file = in_folder(name + ".toml");
    write_text(file, "base = '" + fs::absolute(base).string() + "'" + recipe);
    auto command = with_settings({"run", file, "--out", in_folder(name)},
                                 kTrainOnly +
                                     Words{setting("data.root", data_), "train.threads=1",
                                           "train.max_steps=" + std::to_string(steps)} +
                                     more);
    if (ranks > 1) {
      command = Words{"--oversubscribe", "-n", std::to_string(ranks), MILLRACE_TRAINER} + command;
      ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
      ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    if (fs::exists(in_folder(name))) command.emplace_back("--resume");
    successful(ranks > 1 ? run(MPIEXEC, command) : trainer(command));
    return in_folder(name) / (name + "-1");
  }

  static std::string weights(const fs::path& run, const std::string& file) {
    return read_text(run / "checkpoints" / "latest" / file);
  }

  static void expect_same(const fs::path& a, const fs::path& b) {
    for (const auto* file : {"model.safetensors", "callback.average_weights.safetensors"}) {
      ASSERT_FALSE(weights(a, file).empty()) << file;
      EXPECT_TRUE(weights(a, file) == weights(b, file)) << file;
    }
  }

  /// Returns the metrics of each step.
  static std::vector<Json> steps(const fs::path& run) {
    std::vector<Json> all;
    std::ifstream lines(run / "metrics.jsonl");
    for (std::string line; std::getline(lines, line);)
      if (auto json = Json::parse(line); json.contains("loss")) all.push_back(std::move(json));
    return all;
  }
};

}  // namespace millrace::testing
