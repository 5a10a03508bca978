// Keeps the record of a run up to date during training.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/process/energy.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/trainer/run/run_record.h"

namespace millrace {

/// A callback that every run has, on every rank. Resources are recorded at each checkpoint, at each
/// evaluation and at the end, so that the record of a killed start is recent.
class RunRecorder final : public Callback, public ReadsMetrics {
 public:
  /// `began`: time of this start of the run. `was_used`: the process has trained before.
  /// COLLECTIVE.
  RunRecorder(const Recipe& recipe, const Cluster& cluster, Clock::time_point began, bool was_used);

  /// Target scores of callbacks.evaluate, by name.
  const std::map<std::string, double>& targets() const { return targets_; }

  /// Sets the record to write to; call on rank 0 before the training.
  void record_in(RunStart& start) { start_ = &start; }

  /// Returns the resources used by this start. Every rank calls it, after the training.
  RunUse whole_use();
  /// Returns the resources that rank 0 currently knows of.
  RunUse use();

  void before_train(const TrainState& state) override;
  void after_step(const TrainState&) override;
  void after_train(const TrainState&) override;
  void on_checkpoint(const TrainState&, const std::filesystem::path&) override;
  void on_scalars(const TrainState&, const Moment& of, const Scalars& published) override;
  bool chief_only() const override { return false; }

 private:
  /// CPU time of this process only.
  double own_cpu_s() const;
  void measure_energy();
  void add_other_ranks(RunUse& use) const;

  const Cluster& cluster_;
  const Clock::time_point began_;
  const double price_per_hour_;
  std::map<std::string, double> targets_;
  std::vector<std::string> evaluations_;  // names of evaluating callbacks
  std::vector<double> cpu_before_;        // CPU seconds of each rank before this start
  EnergyMeter meter_;                     // used on the first rank of each host
  std::optional<double> energy_j_;
  Clock::time_point measured_ = Clock::now();  // time of the last energy measurement
  RunUse::Part before_first_;                  // time before the first step
  const TrainState* state_ = nullptr;
  RunStart* start_ = nullptr;
};

}  // namespace millrace
