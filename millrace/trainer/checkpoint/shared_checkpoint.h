// The chief's checkpoints on every rank: they are sent, so that only the chief need see their
// folder.
#pragma once

#include <filesystem>
#include <optional>

#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// As newest_checkpoint, of a folder that the chief sees. Every rank calls it.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder,
                                            const Cluster& cluster);

/// As read_checkpoint, of a folder that the chief sees. Every rank calls it; a file holds 2 GiB at
/// most where there are several.
Checkpoint read_checkpoint(const std::filesystem::path& checkpoint, const Cluster& cluster);

}  // namespace millrace
