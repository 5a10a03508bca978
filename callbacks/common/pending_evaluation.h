// An evaluation whose scores have not been taken yet.
#pragma once

#include <c10/core/GradMode.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <utility>

#include "millrace/base/process/stop_signals.h"
#include "millrace/trainer/evaluation/evaluation.h"

namespace millrace {

/// For the training thread. The destructor cancels the evaluation and waits for it.
class PendingEvaluation {
 public:
  /// Returns nothing once `cancelled`, which it asks often, is true.
  using Work = std::function<std::optional<DetectorScores>(const std::function<bool()>& cancelled)>;

  /// `how`: in a thread of its own (async), or in scores() (deferred).
  PendingEvaluation(const Moment& of, std::launch how, Work work)
      : of_(of), scores_(std::async(how, [this, work = std::move(work)] {
          const c10::NoGradGuard no_graph;  // a thread's own
          return work([this] { return cancelled_ || !StopSignals::received().empty(); });
        })) {}
  ~PendingEvaluation() { cancelled_ = true; }  // the future waits for its thread
  PendingEvaluation(const PendingEvaluation&) = delete;

  const Moment& of() const { return of_; }

  /// Does not wait.
  bool has_failed() const {
    if (scores_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    try {
      scores_.get();
      return false;
    } catch (const std::exception&) {
      return true;
    }
  }

  /// Waits. Nothing if it was cancelled, as by a signal to stop. Throws what `work` threw.
  const std::optional<DetectorScores>& scores() const { return scores_.get(); }

 private:
  Moment of_;
  std::atomic<bool> cancelled_ = false;
  std::shared_future<std::optional<DetectorScores>> scores_;
};

}  // namespace millrace
