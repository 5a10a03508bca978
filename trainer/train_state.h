// The state of a running training, which callbacks read, and the requests that they can make.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/checkpoint/position.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/metrics.h"
#include "millrace/trainer/optimizer/hyper_parameters.h"

namespace millrace {

class Activity;
class CancelledFlows;
class CheckpointHolds;
class Detector;
class MemoryCheckpoints;
struct EvalData;
struct OptimizerOptions;
struct PassWatch;

/// Returns true if every training reports a metric of this name ("loss", "lr", "step", a
/// hyper-parameter), so that no callback can publish it.
bool is_training_metric(std::string_view name);

/// Stop reason of a training that stops to return to a checkpoint.
inline constexpr auto kDivergence = "divergence";

/// Seconds spent in each part of the training since this process began to train.
struct Spent {
  double data_s = 0;         // waiting for the batch of the step
  double exchange_s = 0;     // agreeing with the other ranks on the next step
  double step_s = 0;         // losses, gradients and new values
  double forward_s = 0;      // part of step_s: up to the losses; on a GPU, the time of its stream
  double backward_s = 0;     // part of step_s: from the losses to the gradients; measured likewise
  double sync_s = 0;         // part of step_s: waiting for gradients after the backward pass
  double callbacks_s = 0;    // all callbacks
  double checkpoints_s = 0;  // copying checkpoints and waiting for the previous one
  std::map<std::string, double> by_callback;
};

/// Requests of callbacks. The trainer carries them out at the end of the step boundary.
struct Requests {
  Scalars metrics;                // metrics published for the current moment
  std::vector<Picture> pictures;  // published pictures
  std::map<std::int64_t, std::pair<Moment, Scalars>> late;  // metrics of earlier moments, by step
  bool detector_metrics = false, images = false;  // see request_metrics() and list_images()
  bool checkpoint = false, memory_checkpoint = false;
  std::string stop_reason;
  std::string failure;                        // error of TrainState::fail; empty = none
  std::unique_ptr<MemoryCheckpoints> memory;  // nullptr if no callback keeps checkpoints in memory
  /// Metrics that the running callback may publish.
  const std::vector<std::string>* allowed = nullptr;
};

/// The state of a training. The trainer owns and changes it; callbacks read it and make requests
/// through its const methods. Only for the training thread, except `activity`.
class TrainState {
 public:
  TrainState(Detector& trained, const OptimizerOptions& options);
  ~TrainState();

  Detector& model;
  Position at;
  double previous_progress = 0;  // value of `at.progress` before the last step
  double lr = 0;                 // learning rate of the last step
  StepMetrics scalars;  // metrics of the last step: losses, their sum "loss", then the others
  /// Image ids of the last step by batch; see list_images().
  std::vector<std::vector<std::int64_t>> images;
  std::map<std::string, double> latest;  // last published values; NaN if not finite
  Spent spent;
  /// CPU time of all threads of this process during the same parts.
  Spent spent_cpu;
  const std::unique_ptr<Activity> activity;  // any thread may read it
  mutable HyperParameters hyper;  // callbacks may set new values, which apply from the next step
  std::int64_t total_steps = 0;   // estimate until the last step
  double total_epochs = 0;        // total_steps in epochs
  std::filesystem::path folder;   // the run's folder
  const EvalData* validation = nullptr;  // nullptr if there is no validation split
  /// Creates a second detector like `model` with values of its own; may be empty.
  std::function<std::unique_ptr<Detector>()> make_model;
  /// Returns the tensors of a callback. Throws ConfigError if that callback does not exist.
  std::function<NamedTensors(const std::string& callback)> kept_by;
  const Cluster* cluster;
  bool is_chief = true;
  bool is_last = false;  // true if the last step has been done
  std::string failure;   // what() of the exception that ended training; empty = none
  const std::unique_ptr<CheckpointHolds> checkpoint_holds;  // see hold_checkpoint
  /// Receives the flows of cancelled passes, see PassWatch.
  std::shared_ptr<CancelledFlows> cancelled_flows;

  /// Returns the watch for a pass over the validation data; a stop signal cancels the pass.
  PassWatch pass_watch() const;  // millrace/trainer/validation_pass.h

  Moment now() const { return {at.step, at.progress}; }

  /// Epoch of the next sample, from 0.
  std::int64_t epoch() const { return static_cast<std::int64_t>(at.progress); }

  /// Publishes metrics of the current step to on_scalars of this rank's callbacks, called at the
  /// end of this step boundary. Throws Error for a name that the caller's publishes() does not
  /// contain or that the training itself reports.
  void publish(const Scalars& more) const { publish(now(), more); }

  /// Publishes metrics of an earlier moment.
  void publish(const Moment& of, const Scalars& more) const;

  /// Passes a picture to on_picture of the callbacks at the end of this step boundary.
  void publish_picture(Picture picture) const { requests_.pictures.push_back(std::move(picture)); }

  /// Requests the detector's metrics among the scalars of the next step. A request on one rank
  /// suffices.
  void request_metrics() const { requests_.detector_metrics = true; }

  /// Requests `images` in every step: the image ids of all ranks, ordered by the first batch of
  /// each rank, then the second of each rank. Call it on every rank, in before_train.
  void list_images() const { requests_.images = true; }

  /// Requests a checkpoint at the end of this step boundary. A request on one rank suffices.
  void save_checkpoint() const { requests_.checkpoint = true; }

  /// Prepares checkpoints in the memory of every host. COLLECTIVE; call in before_train.
  void keep_in_memory() const;

  /// Requests a checkpoint in memory at the end of this step boundary. Call it on every rank, at
  /// the same step.
  void save_in_memory() const { requests_.memory_checkpoint = true; }

  /// Returns a handle that protects the checkpoint of `step`, which need not exist yet, from
  /// removal while the handle or a copy of it lives. The checkpoint also remains available to a
  /// resumed run.
  [[nodiscard]] std::shared_ptr<const std::int64_t> hold_checkpoint(std::int64_t step) const;

  /// Reports progress to [callbacks.watchdog]. Call it periodically in a hook that takes minutes.
  void report_progress() const;

  /// Ends training on all ranks at the end of this step boundary.
  void stop(std::string reason) const {
    if (requests_.stop_reason.empty()) requests_.stop_reason = std::move(reason);
  }
  const std::string& stop_reason() const { return requests_.stop_reason; }

  /// Returns true if a signal on any rank ends training before its last step.
  bool is_interrupted() const { return interrupted_; }

  /// Stops training with a checkpoint; the process then exits with the error `problem`. For a
  /// callback that has found a reason to end the run. Throwing instead would lose this step
  /// boundary.
  void fail(const std::string& problem) const {
    save_checkpoint();
    stop(problem);
    if (requests_.failure.empty()) requests_.failure = problem;
  }

 private:
  friend class Trainer;
  friend class StepBoundary;
  friend class CallbackList;
  mutable Requests requests_;
  bool interrupted_ = false;
};

}  // namespace millrace
