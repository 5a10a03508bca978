// Runs the evaluation of a step: while training waits, or on a copy of the weights beside it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/callbacks/common/evaluation_files.h"
#include "millrace/callbacks/common/pending_evaluation.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/evaluation/detector_evaluation.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

/// What training waits for: the scores, the detections alone, or nothing while a copy of the
/// weights is evaluated.
enum class EvaluationMode { waiting, score_in_background, background };
std::vector<std::string> value_names(EvaluationMode);

struct EvaluationSettings {
  EvaluationRun run;
  EvaluationMode mode = EvaluationMode::waiting;
  std::string weights;         // the callback that keeps them; empty: the trained ones
  bool writes_results = true;  // also write the detections, as COCO results
};

/// At most one evaluation runs at a time. Each rank detects in its share; the chief scores all.
/// Every rank makes the same calls.
class EvaluationRunner {
 public:
  explicit EvaluationRunner(EvaluationSettings settings) : settings_(std::move(settings)) {}

  /// Evaluates the weights of `of`, from its checkpoint if that is not the current step; whether
  /// there are scores is for take() to say. `waits`: take() is called next. REQUIRES: none runs.
  void start(TrainState& state, const Moment& of, bool waits);

  bool is_running() const { return pending_ != nullptr; }
  /// Does not wait.
  bool has_failed() const { return pending_ && pending_->has_failed(); }
  const Moment& of() const { return pending_->of(); }

  /// Waits for the scores and writes their files; empty scores except on the chief. Nothing if a
  /// rank was cancelled. Throws what the evaluation threw. REQUIRES: one runs.
  std::optional<DetectorScores> take(const TrainState& state);

  /// Cancels the one that runs, if any, and waits for its end.
  void cancel() {
    pending_.reset();
    part_.reset();
  }

  /// The checkpoint whose weights are evaluated for a step that has passed.
  static std::filesystem::path checkpoint(const TrainState& state, const Moment& of);

 private:
  void detect_now(TrainState& state, const Moment& of);
  void detect_later(TrainState& state, const Moment& of, bool waits);
  Detector& copy_of(TrainState& state, const Moment& of);
  NamedTensors weights(TrainState& state, const Moment& of) const;
  EvaluationFiles files(const TrainState& state, const Moment& of) const;
  bool are_trained() const { return settings_.weights.empty(); }

  EvaluationSettings settings_;
  std::unique_ptr<Detector> copy_;            // outlives pending_
  std::unique_ptr<DetectorEvaluation> part_;  // of this rank, to be joined after pending_
  std::unique_ptr<PendingEvaluation> pending_;
};

}  // namespace millrace
