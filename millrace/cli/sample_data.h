// The data set that a configuration makes for itself.
#pragma once

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// For `trainer run` alone, once per host, called by every rank: makes the sample data set where
/// the configuration's own data.root is not there yet (see DataOptions::sample) and training reads
/// it, not [[data.sources]]; says so. Throws Error.
void make_sample_on_first_use(const Recipe& recipe, const Cluster& cluster = Cluster::alone());

}  // namespace millrace::cli
