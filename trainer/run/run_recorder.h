// Keeps the record of a run up to date while it trains.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/process/energy.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/trainer/run/run_record.h"

namespace millrace {

/// A callback of every run, on every rank. What has been used is written at each checkpoint and
/// each evaluation, and at the end, so that a start that is killed has what was known then.
class RunRecorder final : public Callback, public ReadsMetrics {
 public:
  /// `began`: this start of the run. `was_used`: the process has trained before. Every rank makes
  /// one at the same place.
  RunRecorder(const Recipe& recipe, const Cluster& cluster, Clock::time_point began, bool was_used);

  /// Of callbacks.evaluate, by the names of their scores.
  const std::map<std::string, double>& targets() const { return targets_; }

  /// On the chief, before the training: where to write.
  void record_in(RunStart& start) { start_ = &start; }

  /// What this start has used. Every rank calls it, after the training.
  RunUse whole_use();
  /// What the chief knows of it now.
  RunUse use();

  void before_train(const TrainState& state) override;
  void after_step(const TrainState&) override;
  void after_train(const TrainState&) override;
  void on_checkpoint(const TrainState&, const std::filesystem::path&) override;
  void on_scalars(const TrainState&, const Moment& of, const Scalars& published) override;
  bool chief_only() const override { return false; }

 private:
  /// This process's alone.
  double own_cpu_s() const;
  void measure_energy();
  void add_other_ranks(RunUse& use) const;

  const Cluster& cluster_;
  const Clock::time_point began_;
  const double price_per_hour_;
  std::map<std::string, double> targets_;
  std::vector<std::string> evaluations_;  // callbacks
  std::vector<double> cpu_before_;        // of each rank, before this start
  EnergyMeter meter_;                     // of the first rank of each host
  std::optional<double> energy_j_;
  Clock::time_point measured_ = Clock::now();  // energy
  RunUse::Part before_first_;                  // step
  const TrainState* state_ = nullptr;
  RunStart* start_ = nullptr;
};

}  // namespace millrace
