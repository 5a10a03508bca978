// From the sums that a detector gives to losses.
#pragma once

#include "millrace/models/detector/detector.h"

namespace millrace {

/// Each count once, in the order of the losses. Throws Error for one that is negative or not
/// finite, and for two of one name with other numbers.
Counts counts_of(const LossSums& sums);

/// The sums divided by the totals of their counts, or by 1 if that is 0. Throws Error for a count
/// that has no total.
Losses divided(const LossSums& sums, const Counts& totals);

/// The losses of a batch that is the whole step.
Losses means_of(const LossSums& sums);

}  // namespace millrace
