// The chief's checkpoints on every rank: they are sent, so only the chief needs to see them.
#pragma once

#include <filesystem>
#include <optional>

#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// As newest_checkpoint, of a folder on the chief. Every rank calls it.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder,
                                            const Cluster& cluster);

/// As read_checkpoint, of a folder on the chief. Every rank calls it; with several ranks a file may
/// have 2 GiB at most.
Checkpoint read_checkpoint(const std::filesystem::path& checkpoint, const Cluster& cluster);

}  // namespace millrace
