// What the losses of a step are divided by, where the step is done in parts.
#pragma once

#include <string_view>

namespace millrace {

/// Sums over the parts of a step: its micro-batches (optimizer.accumulate) and its ranks. A loss
/// that is a mean over what was sampled is a sum over the part's share divided by such a total; the
/// parts' losses then add up to the loss of the whole batch, and their gradients to its gradient.
class LossTotals {
 public:
  virtual ~LossTotals() = default;

  /// `local`, this part's share, summed over all parts. Every part asks for the same names in the
  /// same order, also where its share is 0. A number that the host knows already: nothing waits for
  /// the device.
  virtual double sum(std::string_view name, double local) = 0;
};

}  // namespace millrace
