// How a rank is, as its status file has it (docs/status.md).
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/trainer/activity.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Where the training thread is and since when, how far it is, memory and traffic. Any thread may
/// call it, also while training hangs.
nlohmann::ordered_json rank_status(const Cluster& cluster, const Activity& activity);

}  // namespace millrace
