// The environment of a command that computes: processors, threads, device and memory of this
// process, and the recipe's data and detectors.
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

/// Created once per process, before any work, by every command that computes. Every rank calls its
/// functions in the same order.
class Session {
 public:
  /// Wraps a flow of batches before they are uploaded.
  using Observe = std::function<std::unique_ptr<DataFlow<Batch>>(std::unique_ptr<DataFlow<Batch>>)>;

  /// Binds ranks to processors, limits threads, sets deterministic operators and the precision of
  /// matrix products as the recipe requires, opens the device, and makes batches use memory that
  /// the device can copy fast. Throws ConfigError if the device does not exist, or if a rank has
  /// another program or configuration than rank 0.
  explicit Session(Recipe recipe, const Cluster& cluster = Cluster::alone());
  Session(const Session&) = delete;

  const Recipe& recipe() const { return recipe_; }
  const Cluster& cluster() const { return cluster_; }
  at::Device device() const { return device_; }

  /// Creates the recipe's detector with random weights on the device. Throws ConfigError.
  std::unique_ptr<Detector> make_detector(const std::vector<std::string>& classes) const;

  /// Creates the recipe's detector and loads model.weights, if set.
  std::unique_ptr<Detector> make_initial_detector(const std::vector<std::string>& classes) const;

  /// Loads model.weights, if set, into a detector of these classes, and logs a report. Throws
  /// Error; unless model.force_weights is set, also if parameters that the recipe freezes are
  /// missing.
  void load_initial_weights(Detector& detector, const std::vector<std::string>& classes) const;

  /// Creates the recipe's detector with weights that rank 0 reads. Throws Error unless they contain
  /// every parameter of the model.
  std::unique_ptr<Detector> make_trained_detector(const std::vector<std::string>& classes,
                                                  const TrainedWeights& weights) const;

  /// Plans the training of `detector` on this rank's share of `data`; batches are uploaded ahead of
  /// their step. The plan borrows the session, both arguments and whatever `observe` borrows.
  TrainPlan plan(Detector& detector, const TrainData& data, Observe observe = {}) const;

  /// Returns passes over a split, with batches uploaded ahead. Borrows only what `observe` borrows.
  EvalData passes_over(const DataSplit& split, Observe observe = {}) const;

 private:
  const Recipe recipe_;
  const Cluster& cluster_;
  const Threads threads_;
  const at::Device device_;
};

}  // namespace millrace
