// How the ranks of a command begin: from one program and one configuration, on data that are there.
#pragma once

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// To be called by every rank with what it has read. Sets how long others are waited for. Throws ConfigError naming the rank, its host and what differs where one
/// has another program or configuration than the chief.
void start_together(const Recipe& recipe, const Cluster& cluster);

/// To be called by every rank: `make_sample_on_first_use`, once a host.
void make_sample_together(const Recipe& recipe, const Cluster& cluster);

}  // namespace millrace::cli
