// What a command computes with: processors, threads, device and memory of this process, and the
// recipe's data and detectors.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/trainer/run/trained_weights.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

/// Set up once per process, before any work: all commands that compute share it. Every rank calls
/// its functions in the same order.
class Session {
 public:
  /// Wraps a flow of batches before they are uploaded.
  using Observe = std::function<std::unique_ptr<DataFlow<Batch>>(std::unique_ptr<DataFlow<Batch>>)>;

  /// Binds ranks to processors, limits threads, chooses deterministic operators and the precision
  /// of products if the recipe says so, opens the device and has batches made in memory that it
  /// copies fast. Throws ConfigError if there is no such device, or if a rank has another program
  /// or configuration than the chief.
  explicit Session(Recipe recipe, const Cluster& cluster = Cluster::alone());
  Session(const Session&) = delete;

  const Recipe& recipe() const { return recipe_; }
  const Cluster& cluster() const { return cluster_; }
  at::Device device() const { return device_; }

  /// The recipe's detector with random weights, on the device. Throws ConfigError.
  std::unique_ptr<Detector> make_detector(const std::vector<std::string>& classes) const;

  /// The same with model.weights, if any.
  std::unique_ptr<Detector> make_initial_detector(const std::vector<std::string>& classes) const;

  /// Loads model.weights, if any, into a detector of these classes, and logs a report. Throws
  /// Error, also if they lack what the recipe freezes, unless model.force_weights.
  void load_initial_weights(Detector& detector, const std::vector<std::string>& classes) const;

  /// The recipe's detector with weights that the chief reads. Throws Error unless they have every
  /// parameter of the model.
  std::unique_ptr<Detector> make_trained_detector(const std::vector<std::string>& classes,
                                                  const TrainedWeights& weights) const;

  /// A training of `detector` on this rank's share of `data`, uploaded ahead of its step. It
  /// borrows the session, both arguments and what `observe` borrows.
  TrainPlan plan(Detector& detector, const TrainData& data, Observe observe = {}) const;

  /// Passes over a split, uploaded ahead. Borrows nothing but what `observe` does.
  EvalData passes_over(const DataSplit& split, Observe observe = {}) const;

 private:
  const Recipe recipe_;
  const Cluster& cluster_;
  const Threads threads_;
  const at::Device device_;
};

}  // namespace millrace
