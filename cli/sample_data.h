// The data set that a configuration makes for itself.
#pragma once

#include "trainer/recipe.h"

namespace millrace::cli {

/// Makes the sample data set in data.root where the configuration has [data.sample] and the folder is
/// not there yet, and says so. Throws Error.
void make_sample_on_first_use(const Recipe& recipe);

}  // namespace millrace::cli
