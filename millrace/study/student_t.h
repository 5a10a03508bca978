// Student's t and the normal distribution: tails and what they begin at. Pure.
#pragma once

namespace millrace::study {

/// Share of the normal distribution below `x`.
double normal_below(double x);

/// Share of Student's t with `freedom` degrees of freedom that is at least as far from 0 as `t`.
/// REQUIRES: freedom > 0.
double beyond_t(double t, double freedom);

/// The t > 0 with beyond_t(t, freedom) = `tail`. REQUIRES: 0 < tail < 1.
double t_of_tail(double tail, double freedom);

/// The same of the normal distribution: 1.96 for .05.
double normal_of_tail(double tail);

}  // namespace millrace::study
