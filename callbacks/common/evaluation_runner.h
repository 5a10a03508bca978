// Runs the evaluation of a step: while training waits, or on a copy of the weights beside it.
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

/// Runs at most one evaluation at a time. Each rank detects in its share; the chief scores all.
/// Every rank makes the same calls, on the training thread. The destructor cancels.
class EvaluationRunner {
 public:
  explicit EvaluationRunner(EvaluationSettings settings) : settings_(std::move(settings)) {}
  ~EvaluationRunner() { cancel(); }
  EvaluationRunner(const EvaluationRunner&) = delete;

  /// Evaluates the weights of `of`, from its checkpoint if that is not the current step; whether
  /// there are scores is for take() to say. `waits`: take() is called next. REQUIRES: none runs.
  void start(const TrainState& state, const Moment& of, bool waits);

  bool is_running() const { return scores_.valid(); }
  /// Does not wait.
  bool has_failed() const;
  const Moment& of() const { return of_; }

  /// Waits for the scores and writes their files: the detections as COCO results, and the scores as
  /// `trainer eval --json` has them. Empty scores except on the chief; nullopt if a rank was
  /// cancelled, as by a signal to stop. Throws what the evaluation threw. REQUIRES: one runs.
  std::optional<DetectorScores> take(const TrainState& state);

  /// Cancels the one that runs, if any, and waits for its end.
  void cancel();

  /// The checkpoint whose weights are evaluated for a step that has passed.
  static std::filesystem::path checkpoint(const TrainState& state, const Moment& of);

 private:
  struct Files {
    std::filesystem::path results;  // empty: the detections are not written
    std::filesystem::path scores;
  };
  /// Returns nullopt once `cancelled`, which it asks often, is true.
  using Work = std::function<std::optional<DetectorScores>(const std::function<bool()>& cancelled)>;

  void detect_now(const TrainState& state, const Moment& of);
  void detect_later(const TrainState& state, const Moment& of, bool waits);
  /// `how`: in a thread of its own (async), or in take() (deferred).
  void begin(const Moment& of, std::launch how, Work work);
  Detector& copy_of(const TrainState& state, const Moment& of);
  NamedTensors weights(const TrainState& state, const Moment& of) const;
  Files files(const TrainState& state, const Moment& of) const;
  bool are_trained() const { return settings_.weights.empty(); }

  /// The joined scores, written to `files`; empty except on the chief.
  static DetectorScores scored(DetectorEvaluation& joined, const Cluster& cluster,
                               const Files& files);

  EvaluationSettings settings_;
  std::unique_ptr<Detector> copy_;
  std::unique_ptr<DetectorEvaluation> part_;  // of this rank, to be joined after scores_
  Moment of_;
  std::atomic<bool> cancelled_ = false;
  std::shared_future<std::optional<DetectorScores>> scores_;  // not taken yet
};

}  // namespace millrace
