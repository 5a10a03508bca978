// The start of a training: a list of steps that every rank executes in the same order.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "millrace/base/clock.h"
#include "millrace/trainer/run/run.h"
#include "millrace/trainer/run/run_folder.h"
#include "millrace/trainer/run/run_record.h"
#include "millrace/trainer/run/run_recorder.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

/// Returns true if [callbacks.live_edit] may change this training.
bool has_live_edit(const Recipe& recipe);

/// One start of a run, up to its first training step. Members hold the results of the steps so far.
class TrainingStart {
 public:
  /// `began`: time of the start. `diverged`: end of the previous start in this process, after which
  /// this one continues differently; nullopt if there was none. Borrows its arguments.
  TrainingStart(const Session& session, const RunOptions& options, Clock::time_point began,
                const std::optional<TrainEnd>& diverged);
  TrainingStart(const TrainingStart&) = delete;

  /// Executes all steps (kSteps in training_start.cpp); ends early if no training steps are left.
  /// Rethrows the exception of a step after removing the folder of a new run.
  void take();

  /// Returns true if no training steps are left, as agreed by all ranks.
  bool is_done() const { return is_done_; }
  bool is_new() const { return is_new_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::optional<Checkpoint>& checkpoint() const { return checkpoint_; }
  Trainer& trainer() { return *trainer_; }
  RunRecorder& recorder() { return *recorder_; }
  /// The run's record on rank 0; nullptr on other ranks.
  RunStart* record() { return record_ ? &*record_ : nullptr; }
  /// Deletes the run's folder; does nothing on other ranks than 0.
  void remove_folder() {
    if (own_folder_) own_folder_->remove();
  }

 private:
  struct Step;
  static const Step kSteps[];

  void make_callbacks();
  void find_run();
  void read_checkpoint();
  void change_after_return();
  void open_data();
  void make_detector();
  void share_facts();
  void check_training();
  void check_resume();
  void agree_if_done();
  void set_values();
  void make_trainer();
  void prepare_trainer();
  void make_folder();
  void share_folder();

  bool is_chief() const { return cluster_.is_chief(); }

  const Session& session_;
  const RunOptions& options_;
  const Recipe& recipe_;
  const Cluster& cluster_;
  const Clock::time_point began_;
  const std::optional<TrainEnd>& diverged_;
  const RunIdentity mine_;

  CallbackList callbacks_;
  RunRecorder* recorder_ = nullptr;  // owned by callbacks_
  std::optional<RunFolder> own_folder_;
  std::optional<RunStart> record_;
  std::filesystem::path folder_;
  bool is_new_ = false, is_done_ = false;
  std::optional<Checkpoint> checkpoint_;
  std::optional<TrainData> train_;
  std::optional<EvalData> validation_;
  std::unique_ptr<Detector> detector_;
  /// Facts about ranks and data; data_facts_ only on rank 0.
  nlohmann::ordered_json rank_facts_, data_facts_;
  std::optional<Trainer> trainer_;
};

}  // namespace millrace
