#include "millrace/callbacks/common/pending_evaluation.h"

#include <c10/core/GradMode.h>

#include <chrono>
#include <utility>

#include "millrace/base/process/stop_signals.h"

namespace millrace {

PendingEvaluation::PendingEvaluation(const Moment& of, std::launch how, Work work)
    : of_(of), scores_(std::async(how, [this, work = std::move(work)] {
        const c10::NoGradGuard no_graph;  // a thread's own
        return work([this] { return cancelled_ || !StopSignals::received().empty(); });
      })) {}

PendingEvaluation::~PendingEvaluation() { cancelled_ = true; }  // the future waits for its thread

bool PendingEvaluation::has_failed() const {
  if (scores_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  try {
    scores_.get();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

const std::optional<DetectorScores>& PendingEvaluation::scores() const { return scores_.get(); }

}  // namespace millrace
