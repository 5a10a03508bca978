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

/// Everything that a training is created from. References must outlive the trainer.
struct TrainPlan {
  Detector& model;
  TrainOptions train;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::int64_t images_per_step = 1;  // number of images per step, over all ranks and micro-batches
  std::function<std::unique_ptr<DataFlow<Batch>>(const Cursor& start)> start_data;
  const EvalData* validation = nullptr;
  std::function<std::unique_ptr<Detector>()> make_model = {};  // see TrainState
  std::filesystem::path folder;                                // the run's folder; see set_folder()
  std::string config;                     // configuration as TOML, for checkpoints and step records
  std::vector<std::string> classes = {};  // class names by label, for checkpoints and step records
  Metadata metadata = {};                 // metadata of the weights in checkpoints
  const Cluster& cluster = Cluster::alone();
  // Largest planned batch; nullopt = its memory is not checked.
  std::optional<LargestBatch> largest_batch = {};
  bool is_return = false;  // true after a return, in a process that has trained before
};

/// The end of a training that ended without an exception.
struct TrainEnd {
  Position at;
  std::string stop_reason;  // reason to stop; empty = all steps were taken
  bool signalled = false;   // true if a rank received a signal before all work was done
  bool diverged = false;    // true if the training stopped to return to a checkpoint
};

/// Returns true if a training has taken all of its steps.
bool has_all_steps(const Position& at, const TrainOptions& train);

class Trainer {
 public:
  Trainer(TrainPlan plan, CallbackList callbacks);

  /// Resumes from a checkpoint; call before run(). Throws Error if the checkpoint does not fit the
  /// model.
  void resume(const Checkpoint& checkpoint);

  /// Starts the data; call after resume(). Otherwise run() does it. Throws for an invalid pipeline
  /// or schedule and for ranks whose models differ.
  void prepare();

  /// Sets the run's folder if the plan does not have it yet; call before run().
  void set_folder(const std::filesystem::path& folder);

  const Position& at() const { return state_.at; }
  /// Safe to read from any thread.
  const Activity& activity() const { return *state_.activity; }

  /// Trains to the end. Exceptions of a step, the data or a callback are rethrown after
  /// after_train.
  TrainEnd run();

 private:
  void train();
  bool stop_at_signal();
  void stop_if_diverged();
  /// Returns the signal that any rank received; empty = none.
  std::string signal_of_all(bool failed);
  void end_data(const std::string& signal, bool failed);
  void log_schedule() const;
  void warn_skipped_samples() const;
  /// Returns the batches of a step and sets `at` to the position after them; empty if a signal
  /// arrived first.
  std::vector<Batch> next_batches(Position& at);
  double waited_for_ranks_s() const;
  /// Agrees with all ranks on the next step. Returns the places of `batches` in it; nullopt if
  /// training ends.
  std::optional<std::vector<StepPlace>> agree(const std::vector<Batch>& batches, Position& next);
  void step(const std::vector<Batch>& batches, std::span<const StepPlace> places);
  /// Returns a checkpoint with everything except the state and the callbacks.
  Checkpoint checkpoint() const;

  TrainPlan plan_;
  CallbackList callbacks_;
  TrainingStep training_step_;
  Schedule schedule_;
  TrainState state_;
  StepBoundary boundary_;
  std::unique_ptr<DataFlow<Batch>> data_;
  bool resumed_ = false;
  Clock::time_point agreed_ = Clock::now();  // time of the last agreement with the other ranks
  double waited_s_ = 0;                      // seconds waiting for other ranks, until `agreed_`
  double waited_for_data_s_ = 0;
  Stragglers stragglers_;
  StepMemory memory_;
};

}  // namespace millrace
