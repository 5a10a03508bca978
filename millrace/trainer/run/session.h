// What a command computes with: processors, threads, device and memory of this process, and the
// data and detectors that a recipe makes for them.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/threads.h"
#include "millrace/trainer/detector/make_detector.h"
#include "millrace/trainer/evaluation.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/trainer/run/trained_weights.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

/// Set up once per process, before any work. Run, eval, predict, bench model, verify-determinism
/// and replay share it, so that each computes what the others do. Every rank calls its functions in
/// the same order.
class Session {
 public:
  /// Wraps the flow of a training's batches, to watch or replace them before they are uploaded.
  using Observe = std::function<std::unique_ptr<DataFlow<Batch>>(std::unique_ptr<DataFlow<Batch>>)>;

  /// Binds the ranks to their share of processors, limits threads, chooses deterministic operators
  /// as the recipe asks, opens the device and takes batches from memory that it copies fast. Throws
  /// ConfigError where there is no such device, or naming the rank and what differs where one has
  /// another program or configuration than the chief.
  explicit Session(Recipe recipe, const Cluster& cluster = Cluster::alone());
  Session(const Session&) = delete;

  const Recipe& recipe() const { return recipe_; }
  const Cluster& cluster() const { return cluster_; }
  at::Device device() const { return device_; }

  /// The recipe's detector with random weights, on the device. Throws ConfigError.
  std::unique_ptr<Detector> make_detector(const std::vector<std::string>& classes) const;

  /// The same with what model.weights names, if anything.
  std::unique_ptr<Detector> make_initial_detector(const std::vector<std::string>& classes) const;

  /// Loads what model.weights names, if anything, into a detector of these classes, and logs what
  /// came of it. Throws Error.
  void load_initial_weights(Detector& detector, const std::vector<std::string>& classes) const;

  /// The recipe's detector with weights that the chief reads. Throws Error where they do not give
  /// the model every one of its parameters: what is left at random would make every figure
  /// meaningless.
  std::unique_ptr<Detector> make_trained_detector(const std::vector<std::string>& classes,
                                                  const TrainedWeights& weights) const;

  /// A training of `detector` on this rank's share of `data`, with batches that are uploaded ahead
  /// of their step. It borrows the session, both arguments and what `observe` borrows.
  TrainPlan plan(Detector& detector, const TrainData& data, Observe observe = {}) const;

  /// Passes over a split, with batches that are uploaded ahead. It borrows nothing.
  EvalData passes_over(const DataSplit& split) const;

 private:
  const Recipe recipe_;
  const Cluster& cluster_;
  const Threads threads_;
  const at::Device device_;
};

}  // namespace millrace
