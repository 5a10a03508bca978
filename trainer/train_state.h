// What callbacks see of a running training, and what they may ask of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "trainer/activity.h"
#include "trainer/callback.h"
#include "trainer/detector.h"
#include "trainer/evaluation.h"
#include "trainer/hyper_parameters.h"
#include "trainer/position.h"

namespace millrace {

/// Where the time of a training has gone since this process began to train, in seconds.
struct Spent {
  double data_s = 0;       // the step waited for its batch
  double step_s = 0;       // losses, gradients, new values
  double callbacks_s = 0;  // of all callbacks
  double checkpoints_s =
      0;  // checkpoints were copied, and the one before was waited for; not that they are written
};

/// Owned by the trainer. For the training thread alone, but for `activity`.
class TrainState {
 public:
  TrainState(Detector& trained, const OptimizerOptions& options) : model(trained), hyper(options) {}

  Detector& model;
  Position at;
  double previous_progress = 0;  // before the last step
  double lr = 0;                 // of the last step
  Scalars scalars;               // of the last step: the losses, their sum, the gradients' norm
  Spent spent;
  Activity activity;  // any thread may look at it
  HyperParameters hyper;
  std::int64_t total_steps = 0;          // an estimate until the last one
  double total_epochs = 0;               // the same in epochs
  std::filesystem::path folder;          // of this run
  const EvalData* validation = nullptr;  // nullptr: there is none
  /// Makes a second detector like `model`, with values of its own; empty where nobody can.
  std::function<std::unique_ptr<Detector>()> make_model;
  /// Steps whose checkpoints somebody waits for, to hear what is said of them; see needs_checkpoint.
  std::set<std::int64_t> needed_checkpoints;
  bool is_chief = true;
  bool is_last = false;  // the last step has been done
  std::string failure;   // what() of the exception that ended training

  Moment now() const { return {at.step, at.progress}; }

  /// The epoch that the next sample belongs to, from 0.
  std::int64_t epoch() const { return static_cast<std::int64_t>(at.progress); }

  /// Hands scalars to every callback's on_scalars at the end of this step boundary.
  void publish(const Scalars& more) {
    published_.insert(published_.end(), more.begin(), more.end());
  }

  /// The same for scalars that speak of an earlier moment.
  void publish(const Moment& of, const Scalars& more) {
    if (of.step == at.step) return publish(more);
    auto& late = late_[of.step];
    late.first = of;
    late.second.insert(late.second.end(), more.begin(), more.end());
  }

  /// Whether somebody waits for what will be said of that step, now or in a training that is resumed from the newest
  /// checkpoint.
  bool needs_checkpoint(std::int64_t step) const {
    return needed_checkpoints.contains(step) || needed_by_newest_.contains(step);
  }

  /// Asks for a checkpoint at the end of this step boundary.
  void save_checkpoint() { save_asked_ = true; }

  /// Ends training politely at the end of this step boundary.
  void stop(std::string reason) {
    if (stop_reason_.empty()) stop_reason_ = std::move(reason);
  }
  const std::string& stop_reason() const { return stop_reason_; }

 private:
  friend class Trainer;
  Scalars published_;
  std::map<std::int64_t, std::pair<Moment, Scalars>> late_;  // by step
  bool save_asked_ = false;
  std::set<std::int64_t>
      needed_by_newest_;  // needed_checkpoints when the newest checkpoint was taken
  std::string stop_reason_;
};

}  // namespace millrace
