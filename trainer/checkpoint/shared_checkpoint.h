// Checkpoints of one rank on every rank: they are sent, so only that rank needs to see them.
#pragma once

#include <filesystem>
#include <optional>

#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// The newest checkpoint of a run whose folder is on the chief: on its disk or in the memory of any
/// host. Every rank calls it. Throws as newest_checkpoint does.
std::optional<Checkpoint> newest_checkpoint_of(const std::filesystem::path& run,
                                               const Cluster& cluster);

/// As read_checkpoint, of a folder on the rank `from`. Every rank calls it; with several ranks a
/// file may have 2 GiB at most.
Checkpoint read_checkpoint(const std::filesystem::path& checkpoint, const Cluster& cluster,
                           std::int64_t from = 0);

}  // namespace millrace
