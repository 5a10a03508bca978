// What the losses of a step are divided by, where the step is done in parts.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace millrace {

/// Sums over the parts of a step: its micro-batches (optimizer.accumulate). A loss that is a mean over what was sampled
/// is a sum over the part's share divided by such a total; the parts' losses then add up to the loss of the whole batch,
/// and their gradients to its gradient.
class LossTotals {
 public:
  virtual ~LossTotals() = default;

  /// `local`, this part's share, summed over all parts. Every part asks for the same names in the same order. A number
  /// that the host knows already: nothing waits for the device.
  virtual double sum(std::string_view name, double local) = 0;
};

/// Totals of micro-batches, which a first pass over all of them adds up and a second one is given.
class MicroBatchTotals final : public LossTotals {
 public:
  /// In the first pass: `local`. In the second: the total; throws Error where the first did not ask for it.
  double sum(std::string_view name, double local) override;

  /// Between the passes. Throws Error where nothing was asked for: the losses would not be shares of anything.
  void end_first_pass();

 private:
  std::map<std::string, double, std::less<>> sums_;
  bool are_known_ = false;
};

}  // namespace millrace
