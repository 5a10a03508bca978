// An evaluation that was started and whose scores are still to be taken.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/trainer/evaluation.h"

namespace millrace {

/// Runs `work`. What that throws is thrown on as an Error that says of which step the evaluation
/// is.
template <class Work>
decltype(auto) naming(const Moment& of, Work work) try {
  return work();
} catch (const std::exception& problem) {
  throw Error(fmt::format("evaluation of step {}: {}", of.step, problem.what()));
}

/// Made, asked and destroyed by the training thread. Destroying one cancels it and waits until it
/// has noticed.
class PendingEvaluation {
 public:
  /// Gives nothing where `cancelled`, which it asks now and then, says so.
  using Work = std::function<std::optional<DetectorScores>(const std::function<bool()>& cancelled)>;

  /// `how` as for std::async: at once in a thread of its own, or deferred until scores() is called.
  PendingEvaluation(const Moment& of, std::launch how, Work work);
  ~PendingEvaluation();
  PendingEvaluation(const PendingEvaluation&) = delete;
  PendingEvaluation& operator=(const PendingEvaluation&) = delete;

  /// The moment of the training that it speaks of.
  const Moment& of() const { return of_; }

  /// Whether it has ended with an error. Does not wait.
  bool has_failed() const;

  /// Waits. Nothing where it was cancelled, as it is by a signal that asks the process to stop.
  /// Throws what `work` threw.
  const std::optional<DetectorScores>& scores() const;

 private:
  Moment of_;
  std::atomic<bool> cancelled_ = false;
  std::shared_future<std::optional<DetectorScores>> scores_;
};

}  // namespace millrace
