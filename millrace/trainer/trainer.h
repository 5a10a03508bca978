// The training loop. It knows detectors, data and callbacks by their interfaces alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/dataflow.h"
#include "millrace/trainer/callback_list.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/step_agreement.h"
#include "millrace/trainer/cluster/stragglers.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "millrace/trainer/optimizer/schedule.h"
#include "millrace/trainer/step_boundary.h"
#include "millrace/trainer/train_options.h"
#include "millrace/trainer/train_state.h"
#include "millrace/trainer/training_step.h"

namespace millrace {

/// Everything that a training is made from. What is borrowed must outlive the trainer.
struct TrainPlan {
  Detector& model;
  TrainOptions train;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::int64_t images_per_step = 1;  // over all ranks and micro-batches
  std::function<std::unique_ptr<DataFlow<Batch>>(const Cursor& start)> start_data;
  const EvalData* validation = nullptr;
  std::function<std::unique_ptr<Detector>()> make_model = {};  // see TrainState
  std::filesystem::path folder;                                // of the run; see set_folder
  std::string config;                     // TOML, for checkpoints and records of steps
  std::vector<std::string> classes = {};  // names in label order, for the same
  Metadata metadata = {};                 // of the weights in checkpoints
  const Cluster& cluster = Cluster::alone();
};

/// How a training ended without an exception.
struct TrainEnd {
  Position at;
  std::string stop_reason;  // empty: it ran to its end
  bool signalled = false;   // a signal came, to whatever rank, before all was done
};

/// Whether a training that stands there has taken all of its steps.
bool has_all_steps(const Position& at, const TrainOptions& train);

class Trainer {
 public:
  Trainer(TrainPlan plan, CallbackList callbacks);

  /// Goes on where a checkpoint was taken; call before run. Throws Error where it does not fit the
  /// model.
  void resume(const Checkpoint& checkpoint);

  /// Starts the data, after resume; run does it where nobody has. Throws what only they can tell: a
  /// pipeline or a schedule that cannot work, ranks whose models differ.
  void prepare();

  /// Where the run keeps its files, for a plan that could not say so yet; call before run.
  void set_folder(const std::filesystem::path& folder);

  /// Where it stands.
  const Position& at() const { return state_.at; }

  /// Trains to the end. Throws what a step, the data or a callback threw, after after_train.
  TrainEnd run();

 private:
  void train();
  bool stop_at_signal();
  /// The signal that came to this rank or, as all agree, to another one; empty: none.
  std::string signal_of_all(bool failed);
  void end_data(const std::string& signal, bool failed);
  void check_schedule() const;
  void tell_of_schedule() const;
  void tell_of_skipped() const;
  /// The batches of one step, and the place behind them; none where a signal came first.
  std::vector<Batch> next_batches(Position& at);
  double waited_for_ranks_s() const;
  /// The places of these batches in the step that all ranks take; nothing where training ends. What
  /// else they agree upon for it takes effect here.
  std::optional<std::vector<StepPlace>> agree(const std::vector<Batch>& batches, Position& behind);
  void step(const std::vector<Batch>& batches, std::span<const StepPlace> places);
  /// What a checkpoint keeps besides the state and the callbacks.
  Checkpoint checkpoint() const;

  TrainPlan plan_;
  CallbackList callbacks_;
  TrainingStep training_step_;
  Schedule schedule_;
  TrainState state_;
  StepBoundary boundary_;
  std::unique_ptr<DataFlow<Batch>> data_;
  bool resumed_ = false;
  Clock::time_point agreed_ = Clock::now();  // with the other ranks, the last time
  double waited_s_ = 0;                      // for other ranks, until then
  double waited_for_data_s_ = 0;
  Stragglers stragglers_;
};

}  // namespace millrace
