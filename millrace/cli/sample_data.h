// The data set that a configuration makes for itself.
#pragma once

#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// For `trainer run` alone: makes the sample data set where the configuration's own data.root is not there yet (see
/// DataOptions::sample) and training reads it, not [[data.sources]]; says so. Throws Error.
void make_sample_on_first_use(const Recipe& recipe);

}  // namespace millrace::cli
