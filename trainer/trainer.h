// The training loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/trainer/callback_list.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/step_agreement.h"
#include "millrace/trainer/memory/step_memory.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "millrace/trainer/optimizer/schedule.h"
#include "millrace/trainer/step_boundary.h"
#include "millrace/trainer/train_options.h"
#include "millrace/trainer/train_state.h"
#include "millrace/trainer/training_step.h"

namespace millrace {

/// What a training is made from. References must outlive the trainer.
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
  std::vector<std::string> classes = {};  // by label, for the same
  Metadata metadata = {};                 // of the weights in checkpoints
  const Cluster& cluster = Cluster::alone();
  std::optional<LargestBatch> largest_batch = {};  // planned; nullopt = it is not checked to fit
  bool is_return = false;  // after a divergence, in a process that has trained before
};

/// How a training ended without an exception.
struct TrainEnd {
  Position at;
  std::string stop_reason;  // empty: it ran to its end
  bool signalled = false;   // a signal came to a rank before all was done
  bool diverged = false;    // it stopped to return to a checkpoint
};

/// Whether a training has taken all of its steps.
bool has_all_steps(const Position& at, const TrainOptions& train);

class Trainer {
 public:
  Trainer(TrainPlan plan, CallbackList callbacks);

  /// Resumes from a checkpoint; call before run. Throws Error if it does not fit the model.
  void resume(const Checkpoint& checkpoint);

  /// Starts the data, after resume; else run does. Throws for a pipeline or a schedule that cannot
  /// work and for ranks whose models differ.
  void prepare();

  /// The run's folder, if the plan does not have it yet; call before run.
  void set_folder(const std::filesystem::path& folder);

  const Position& at() const { return state_.at; }
  /// Any thread may look at it.
  const Activity& activity() const { return *state_.activity; }

  /// Trains to the end. Throws what a step, the data or a callback threw, after after_train.
  TrainEnd run();

 private:
  void train();
  bool stop_at_signal();
  void stop_if_diverged();
  /// The signal that came to any rank; empty: none.
  std::string signal_of_all(bool failed);
  void end_data(const std::string& signal, bool failed);
  void check_schedule() const;
  void tell_of_schedule() const;
  void tell_of_skipped() const;
  /// The batches of a step, and the position after them; none if a signal came first.
  std::vector<Batch> next_batches(Position& at);
  double waited_for_ranks_s() const;
  /// Agrees with all ranks on the next step. The places of these batches in it; nothing if training
  /// ends.
  std::optional<std::vector<StepPlace>> agree(const std::vector<Batch>& batches, Position& next);
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
  StepMemory memory_;
};

}  // namespace millrace
