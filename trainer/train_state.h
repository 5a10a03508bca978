// What callbacks see of a running training, and what they may request of it.
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

/// Whether every training reports a metric of this name ("loss", "lr", "step", a hyper-parameter),
/// so that no callback can publish it.
bool is_own_figure(std::string_view name);

/// Why a training stops that returns to a checkpoint.
inline constexpr auto kDivergence = "divergence";

/// Where the time of a training has gone since this process began to train, in seconds.
struct Spent {
  double data_s = 0;         // the step waited for its batch
  double exchange_s = 0;     // agreed with the other ranks on the next step
  double step_s = 0;         // losses, gradients, new values
  double forward_s = 0;      // of step_s: up to the losses; on a GPU, by its stream
  double backward_s = 0;     // of step_s: from the losses to the gradients, likewise
  double sync_s = 0;         // of step_s: the wait for gradients after the backward pass
  double callbacks_s = 0;    // all callbacks
  double checkpoints_s = 0;  // copying checkpoints, and waiting for the previous one
  std::map<std::string, double> by_callback;
};

/// What callbacks have requested; the trainer carries it out at the end of the step boundary.
struct Requests {
  Scalars metrics;                                          // published for the present moment
  std::vector<Picture> pictures;                            // published
  std::map<std::int64_t, std::pair<Moment, Scalars>> late;  // metrics of earlier moments, by step
  bool figures = false, images = false;                     // see request methods of TrainState
  bool checkpoint = false, memory_checkpoint = false;
  std::string stop_reason;
  std::string failure;                                // see TrainState::fail
  std::unique_ptr<MemoryCheckpoints> memory;          // nullptr: no callback keeps them
  const std::vector<std::string>* allowed = nullptr;  // metrics that the running callback publishes
};

/// Owned by the trainer, which alone changes it; callbacks read it and request things by its const
/// methods. For the training thread alone, except `activity`.
class TrainState {
 public:
  TrainState(Detector& trained, const OptimizerOptions& options);
  ~TrainState();

  Detector& model;
  Position at;
  double previous_progress = 0;  // before the last step
  double lr = 0;                 // of the last step
  StepFigures scalars;           // of the last step: the losses, "loss", their sum, then the rest
  /// Of the last step: ids by batch; see list_images.
  std::vector<std::vector<std::int64_t>> images;
  std::map<std::string, double> latest;  // last published values; NaN: not finite
  Spent spent;
  /// The same of the CPU time of all threads of this process, whatever they did meanwhile.
  Spent spent_cpu;
  const std::unique_ptr<Activity> activity;  // any thread may look at it
  mutable HyperParameters hyper;             // callbacks may set others, from the next step on
  std::int64_t total_steps = 0;              // an estimate until the last one
  double total_epochs = 0;                   // the same in epochs
  std::filesystem::path folder;              // of this run
  const EvalData* validation = nullptr;      // nullptr: there is none
  /// Makes a second detector like `model`, with values of its own; may be empty.
  std::function<std::unique_ptr<Detector>()> make_model;
  /// The tensors that a callback keeps. Throws ConfigError if there is no such callback.
  std::function<NamedTensors(const std::string& callback)> kept_by;
  const Cluster* cluster;
  bool is_chief = true;
  bool is_last = false;  // the last step has been done
  std::string failure;   // what() of the exception that ended training
  const std::unique_ptr<CheckpointHolds> checkpoint_holds;  // see hold_checkpoint
  /// See PassWatch.
  std::shared_ptr<CancelledFlows> cancelled_flows;

  /// For a pass over the validation data, which a signal cancels.
  PassWatch pass_watch() const;  // millrace/trainer/validation_pass.h

  Moment now() const { return {at.step, at.progress}; }

  /// The epoch that the next sample belongs to, from 0.
  std::int64_t epoch() const { return static_cast<std::int64_t>(at.progress); }

  /// Gives metrics to on_scalars of this rank's callbacks at the end of this step boundary. Throws
  /// Error for a name that the caller's publishes() lacks or that the training itself reports.
  void publish(const Scalars& more) const { publish(now(), more); }

  /// The same for metrics of an earlier moment.
  void publish(const Moment& of, const Scalars& more) const;

  /// Gives a picture to on_picture at the end of this step boundary.
  void publish_picture(Picture picture) const { requests_.pictures.push_back(std::move(picture)); }

  /// Asks for the detector's figures among the scalars of the next step. One rank is enough.
  void ask_for_figures() const { requests_.figures = true; }

  /// Asks for the ids of the images of all ranks in every step: the first batch of each rank, then
  /// the second of each. Every rank must ask, in before_train.
  void list_images() const { requests_.images = true; }

  /// Asks for a checkpoint at the end of this step boundary. One rank is enough.
  void save_checkpoint() const { requests_.checkpoint = true; }

  /// Makes room for checkpoints in the memory of every host. COLLECTIVE, in before_train.
  void keep_in_memory() const;

  /// The same as save_checkpoint for one in memory. Every rank must ask, at the same step.
  void save_in_memory() const { requests_.memory_checkpoint = true; }

  /// A handle: while it or a copy of it lives, the checkpoint of that step, which need not exist
  /// yet, is not removed; a resumed run still has it, too.
  [[nodiscard]] std::shared_ptr<const std::int64_t> hold_checkpoint(std::int64_t step) const;

  /// A sign of life, for [callbacks.watchdog]: call it now and then in a hook that takes minutes.
  void moves() const;

  /// Ends training on all ranks at the end of this step boundary.
  void stop(std::string reason) const {
    if (requests_.stop_reason.empty()) requests_.stop_reason = std::move(reason);
  }
  const std::string& stop_reason() const { return requests_.stop_reason; }

  /// Whether a signal ends training, on any rank, before its last step.
  bool is_interrupted() const { return interrupted_; }

  /// Stops training with a checkpoint; the process then exits with the error `problem`. For a
  /// callback that works and has found a reason to end: one that throws loses this step boundary.
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
