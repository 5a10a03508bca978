// Evaluates the weights of a step, either while training waits or concurrently on a copy of the
// weights.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/trainer/evaluation/detector_evaluation.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

/// How long training waits: for the scores, for the detections only, or not at all, while a copy of
/// the weights is evaluated.
enum class EvaluationMode { waiting, score_in_background, background };
std::vector<std::string> value_names(EvaluationMode);

struct EvaluationSettings {
  EvaluationRun run;
  EvaluationMode mode = EvaluationMode::waiting;
  std::string weights;  // name of the callback that keeps the weights; empty = the trained ones
};

/// Runs at most one evaluation at a time. Each rank detects in its share and rank 0 scores all.
/// Every rank makes the same calls, on the training thread. The destructor cancels.
class EvaluationRunner {
 public:
  explicit EvaluationRunner(EvaluationSettings settings) : settings_(std::move(settings)) {}
  ~EvaluationRunner() { cancel(); }
  EvaluationRunner(const EvaluationRunner&) = delete;

  /// Starts the evaluation of the weights of `of`; if that is not the current step, they are read
  /// from its checkpoint. `waits`: take() is called next. REQUIRES: no evaluation is running.
  void start(const TrainState& state, const Moment& of, bool waits);

  bool is_running() const { return scores_.valid(); }
  /// Returns true if the evaluation has ended with an exception. Does not wait.
  bool has_failed() const;
  const Moment& of() const { return of_; }

  /// Waits for the scores and writes the detections as COCO results and the scores in the format of
  /// `trainer eval --json`. Scores are empty except on rank 0; nullopt if any rank was cancelled,
  /// e.g. by a stop signal. Rethrows exceptions of the evaluation. REQUIRES: an evaluation is
  /// running.
  std::optional<DetectorScores> take(const TrainState& state);

  /// Cancels the running evaluation, if any, and waits for its end.
  void cancel();

  /// Returns the checkpoint with the weights of an earlier step.
  static std::filesystem::path checkpoint(const TrainState& state, const Moment& of);

 private:
  /// Calls `cancelled` often and returns nullopt when it returns true.
  using Work = std::function<std::optional<DetectorScores>(const std::function<bool()>& cancelled)>;

  void detect_now(const TrainState& state, const Moment& of);
  void detect_later(const TrainState& state, const Moment& of, bool waits);
  /// `how`: on a separate thread (async), or in take() (deferred).
  void begin(const Moment& of, std::launch how, Work work);
  Detector& copy_of(const TrainState& state, const Moment& of);
  NamedTensors weights(const TrainState& state, const Moment& of) const;
  bool are_trained() const { return settings_.weights.empty(); }

  /// Writes the joined scores of `of_`, and the detections if they are kept, and returns the
  /// scores; empty except on rank 0.
  DetectorScores scored(DetectorEvaluation& joined, const TrainState& state) const;

  EvaluationSettings settings_;
  std::unique_ptr<Detector> copy_;
  std::unique_ptr<DetectorEvaluation> part_;  // part of this rank, to be joined after scores_
  Moment of_;
  std::atomic<bool> cancelled_ = false;
  /// Result of the running evaluation, not yet returned by take().
  std::shared_future<std::optional<DetectorScores>> scores_;
};

}  // namespace millrace
