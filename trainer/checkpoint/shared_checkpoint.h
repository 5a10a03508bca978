// Reads checkpoints that only one rank can access and sends them to the other ranks.
#pragma once

#include <filesystem>
#include <optional>

#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Returns the newest checkpoint of a run, either from rank 0's disk or from the memory of any
/// host. Every rank calls it; only rank 0 needs to see the run's folder. Throws like
/// newest_checkpoint.
std::optional<Checkpoint> newest_checkpoint_of(const std::filesystem::path& run,
                                               const Cluster& cluster);

/// Reads a checkpoint in a folder of rank `from`, like read_checkpoint. Every rank calls it. With
/// several ranks, each file may have up to 2 GiB.
Checkpoint read_checkpoint(const std::filesystem::path& checkpoint, const Cluster& cluster,
                           std::int64_t from = 0);

}  // namespace millrace
