// Converts the sums that a detector returns to losses.
#pragma once

#include "millrace/models/detector/detector.h"

namespace millrace {

/// Returns each count once, in the order of the losses. Throws Error for a count that is negative
/// or not finite, and for two counts of one name with different numbers.
LossDivisors counts_of(const LossSums& sums);

/// Returns the sums divided by the totals of their counts, or by 1 if a total is 0. Throws Error
/// for a count without a total.
Losses divided(const LossSums& sums, const LossDivisors& totals);

/// Returns the losses of a batch that is the whole step.
Losses means_of(const LossSums& sums);

}  // namespace millrace
