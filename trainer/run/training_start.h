// How a training starts: one list of steps, which every rank takes in its order.
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

/// Whether edits by [callbacks.live_edit] may change this training.
bool has_live_edit(const Recipe& recipe);

/// One start of a run, up to its first step. Members are what the steps have made so far.
class TrainingStart {
 public:
  /// `began`: the start. `diverged`: how the one before ended, for this one to take another way.
  /// Borrows all.
  TrainingStart(const Session& session, const RunOptions& options, Clock::time_point began,
                const std::optional<TrainEnd>& diverged);
  TrainingStart(const TrainingStart&) = delete;

  /// Takes all steps (kStartSteps in training_start.cpp); ends early if nothing is left to train.
  /// Throws what a step throws; a run's new folder is removed then.
  void take();

  /// Nothing is left to train, as all ranks have agreed.
  bool is_done() const { return is_done_; }
  bool is_new() const { return is_new_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::optional<Checkpoint>& checkpoint() const { return checkpoint_; }
  Trainer& trainer() { return *trainer_; }
  RunRecorder& recorder() { return *recorder_; }
  /// On the chief; else nullptr.
  RunStart* record() { return record_ ? &*record_ : nullptr; }
  /// On the chief: deletes the run's folder.
  void remove_folder() {
    if (own_folder_) own_folder_->remove();
  }

 private:
  struct Step;
  static const Step kSteps[];

  void make_callbacks();
  void find_run();
  void read_checkpoint();
  void take_another_way();
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
  RunRecorder* recorder_ = nullptr;  // one of them
  std::optional<RunFolder> own_folder_;
  std::optional<RunStart> record_;
  std::filesystem::path folder_;
  bool is_new_ = false, is_done_ = false;
  std::optional<Checkpoint> checkpoint_;
  std::optional<TrainData> train_;
  std::optional<EvalData> validation_;
  std::unique_ptr<Detector> detector_;
  nlohmann::ordered_json rank_facts_, data_facts_;  // the second of the chief
  std::optional<Trainer> trainer_;
};

}  // namespace millrace
