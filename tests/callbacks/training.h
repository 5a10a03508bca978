// A complete training run of the fake detector with registered callbacks. Tests can stop or kill it
// at any step.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/trainer/checkpoint/shared_checkpoint.h"
#include "millrace/trainer/run/recipe.h"
#include "tests/support/fake_training.h"
#include "tests/support/json_lines.h"
#include "tests/support/scratch.h"

namespace millrace::testing {

/// Pairs of a callback's name and its TOML table.
using Declared = std::vector<std::pair<std::string, std::string>>;

inline const Declared kDefaultCallbacks = {
    {"log", "every = '2 steps'"},        {"checkpoint", "every = '3 steps'\nkeep = 2"},
    {"evaluate", "every = '1 epoch'"},   {"figures", "every = '3 steps'"},
    {"keep_best", "metric = 'bbox/AP'"}, {"progress", ""}};

/// Creates the callbacks that these tables declare, as if they came from a configuration.
inline CallbackList made(const Declared& declared) {
  Recipe recipe;
  for (const auto& [name, toml] : declared) {
    auto table = parse_config(toml, "test.toml");
    if (auto callback = read_callback(name, table))
      recipe.callbacks.push_back(std::move(*callback));
  }
  return make_callbacks(recipe);
}

struct Training {
  std::filesystem::path folder;
  Declared declared = kDefaultCallbacks;
  std::function<void(const TrainState&)> before_step = {};
  std::function<void(TrainPlan&)> adjust = {};
  std::function<std::unique_ptr<Detector>()> make_model = [] {
    return std::make_unique<LineDetector>();
  };
  std::function<void(const TrainState&, const Moment&, const Scalars&)> on_published = {};
  const Cluster* cluster = &Cluster::alone();
  std::function<void(CallbackList&)> add = {};  // adds further callbacks

  /// Trains from the newest checkpoint, if there is one.
  TrainEnd operator()() const {
    std::filesystem::create_directories(folder);
    const auto model = make_model();
    const auto validation = fake_validation();
    auto plan = fake_plan(*model, folder, *cluster);
    plan.validation = &validation;
    plan.make_model = make_model;
    if (adjust) adjust(plan);
    auto list = made(declared);
    auto lambda = std::make_unique<LambdaCallback>();
    lambda->names = {};
    lambda->on_before_step = before_step;
    lambda->on_published = on_published;
    list.add("test", std::move(lambda));
    if (add) add(list);
    Trainer trainer(std::move(plan), std::move(list));
    if (const auto checkpoint = newest_checkpoint_of(folder, *cluster)) trainer.resume(*checkpoint);
    return trainer.run();
  }

  /// Trains in a child process and returns its wait status.
  int in_child() const {
    const auto child = start_child();
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }

  /// Kills the training process after `victim` steps, then resumes the run in another process.
  void killed_after(std::int64_t victim) const {
    auto killed = *this;
    killed.before_step = [&](const TrainState& s) {
      if (s.at.step == victim) ::kill(::getpid(), SIGKILL);
      if (before_step) before_step(s);
    };
    EXPECT_TRUE(WIFSIGNALED(killed.in_child())) << victim;
    EXPECT_EQ(in_child(), 0) << victim;
  }

  pid_t start_child() const {
    const auto child = ::fork();
    if (child != 0) return child;
    try {
      (*this)();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
};

/// Returns the lines of metrics.jsonl.
inline std::vector<nlohmann::json> metrics(const std::filesystem::path& run) {
  return json_lines(run / "metrics.jsonl");
}

/// Returns the results that depend only on the configuration: weights, momentum and metrics without
/// times.
inline std::string deterministic_results(const std::filesystem::path& run) {
  const auto latest = run / "checkpoints" / "latest";
  return read_file(latest / "model.safetensors") + read_file(latest / "optimizer.safetensors") +
         metrics_without_times(run / "metrics.jsonl");
}

}  // namespace millrace::testing
