// A role of a detector: it knows what its losses are divided by before its network has run.
#pragma once

#include "millrace/models/detector/detector.h"

namespace millrace {

/// Saves steps of several batches (optimizer.accumulate) the second forward pass that would count
/// for StepInfo::total. A base class beside Detector.
class KnowsTotals {
 public:
  /// Asks `step` for what `losses` would ask for: the same names in the same order, with the same
  /// shares to the bit. Called under at::NoGradGuard; changes nothing in the model. With
  /// train.micro_batch several threads call it at once.
  virtual void ask_totals(const Batch& batch, const StepInfo& step) = 0;

 protected:
  ~KnowsTotals() = default;
};

/// Lets a detector ask for the totals of its losses: by KnowsTotals, else by computing the losses.
/// What it throws becomes an Error with its name.
void ask_totals_of(Detector& detector, const Batch& batch, const StepInfo& step);

}  // namespace millrace
