// Whether a training gives the same bytes twice.
#pragma once

#include <cstdint>

#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// Takes so many steps twice from the same start, each time with a flow, detector and optimizer of
/// its own, and prints that all is equal, or the first step and tensor that differs: batch, loss,
/// gradient or parameter, in this order. Nothing is written. kDone where equal, kFailed where not,
/// kStoppedEarly after a signal.
int verify_determinism(const Recipe& recipe, std::int64_t steps);

}  // namespace millrace::cli
