// What callbacks see of a running training, and what they may ask of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/trainer/activity.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/checkpoint/position.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/detector.h"
#include "millrace/trainer/evaluation.h"
#include "millrace/trainer/optimizer/hyper_parameters.h"

namespace millrace {

/// Whether every training has a figure of this name by itself ("loss", "lr", "step", a hyper-parameter), so that no
/// callback can publish it.
bool is_own_figure(std::string_view name);

/// Where the time of a training has gone since this process began to train, in seconds.
struct Spent {
  double data_s = 0;  // the step waited for its batch
  double step_s = 0;  // losses, gradients, new values
  double sync_s = 0;  // of these, other ranks' gradients were waited for behind the backward pass
  double callbacks_s = 0;    // of all callbacks
  double checkpoints_s = 0;  // checkpoints were copied, the one before waited for
  std::map<std::string, double> by_callback;
};

/// Owned by the trainer. For the training thread alone, but for `activity`.
class TrainState {
 public:
  TrainState(Detector& trained, const OptimizerOptions& options) : model(trained), hyper(options) {}

  Detector& model;
  Position at;
  double previous_progress = 0;  // before the last step
  double lr = 0;                 // of the last step
  StepFigures scalars;           // of the last step: the losses, "loss", their sum, then the rest
  std::map<std::string, double> latest;  // last values of what was published; NaN: not finite
  std::string caller;                    // the callback that is being called
  Spent spent;
  Activity activity;  // any thread may look at it
  HyperParameters hyper;
  std::int64_t total_steps = 0;          // an estimate until the last one
  double total_epochs = 0;               // the same in epochs
  std::filesystem::path folder;          // of this run
  const EvalData* validation = nullptr;  // nullptr: there is none
  /// Makes a second detector like `model`, with values of its own; empty where nobody can.
  std::function<std::unique_ptr<Detector>()> make_model;
  /// The tensors that a callback keeps, by its name; throws ConfigError where there is no such callback.
  std::function<NamedTensors(const std::string& callback)> kept_by;
  /// Steps whose checkpoints somebody waits for, once for each, to hear what is said of them; see needs_checkpoint.
  std::multiset<std::int64_t> needed_checkpoints;
  const Cluster* cluster =
      &Cluster::alone();  // the ranks that train together, this process among them
  bool is_chief = true;
  bool is_last = false;  // the last step has been done
  std::string failure;   // what() of the exception that ended training

  Moment now() const { return {at.step, at.progress}; }

  /// The epoch that the next sample belongs to, from 0.
  std::int64_t epoch() const { return static_cast<std::int64_t>(at.progress); }

  /// Hands scalars to every callback's on_scalars at the end of this step boundary: to those of this rank. Throws Error
  /// for a name that the callback's publishes() does not have, or that the training's own figures have.
  void publish(const Scalars& more) { publish(now(), more); }

  /// The same for scalars that speak of an earlier moment.
  void publish(const Moment& of, const Scalars& more);

  /// Hands a picture to every callback's on_picture at the end of this step boundary.
  void publish_picture(Picture picture) { pictures_.push_back(std::move(picture)); }

  /// Asks the detector for its figures in the next step; they will be among the scalars. One rank that asks is enough.
  void ask_for_figures() { figures_asked_ = true; }

  /// Whether somebody waits for what will be said of that step, now or in a training that is resumed from the newest
  /// checkpoint.
  bool needs_checkpoint(std::int64_t step) const {
    return needed_checkpoints.contains(step) || needed_by_newest_.contains(step);
  }

  /// Asks for a checkpoint at the end of this step boundary. The chief writes it; one rank that asks is enough.
  void save_checkpoint() { save_asked_ = true; }

  /// Ends training politely at the end of this step boundary, on all ranks.
  void stop(std::string reason) {
    if (stop_reason_.empty()) stop_reason_ = std::move(reason);
  }
  const std::string& stop_reason() const { return stop_reason_; }

 private:
  friend class Trainer;
  friend class CallbackList;
  const std::vector<std::string>* may_publish_ = nullptr;  // of the caller
  Scalars published_;
  std::vector<Picture> pictures_;
  std::map<std::int64_t, std::pair<Moment, Scalars>> late_;  // by step
  bool figures_asked_ = false;
  bool save_asked_ = false;
  std::multiset<std::int64_t> needed_by_newest_;  // needed_checkpoints at the newest checkpoint
  std::string stop_reason_;
};

}  // namespace millrace
