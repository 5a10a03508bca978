// Checkpoints in the memory of every host: faster than a disk, and available while any host runs.
//
//   RUN/memory                                       "RUN-NUMBER/START-NUMBER", random numbers
//   /dev/shm/millrace-UID/RUN-NUMBER/START-NUMBER/step-000057    on every host
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/checkpoint/checkpoint_writer.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// All ranks have the same weights after a step, so only the states of rank 0's callbacks are sent.
/// The first rank of each host writes. Checkpoints on hosts that did not take part in the newest
/// start that saved one are ignored, since they may not match the steps taken since then.
class MemoryCheckpoints {
 public:
  /// For one start of a run. Only rank 0 sees the run's folder, but every rank constructs one. A
  /// host that cannot store checkpoints, now or later, warns and continues without them.
  MemoryCheckpoints(const std::filesystem::path& run, const Cluster& cluster);

  /// Stores a checkpoint, of which only rank 0 passes the callback states, and removes the previous
  /// one. Every rank calls it at the same step. The checkpoint is copied and then written in the
  /// background.
  void save(Checkpoint mine);

  /// Removes all of them, because the run no longer needs them.
  void remove();

 private:
  void or_go_on_without(const std::function<void()>& work);
  void remove_older(const std::filesystem::path& newest) const;

  const Cluster& cluster_;
  std::filesystem::path record_;  // RUN/memory
  std::string name_;              // content of RUN/memory
  std::filesystem::path folder_;  // folder on this host; empty = this rank stores none
  std::optional<CheckpointWriter> writer_;
  bool recorded_ = false;
};

/// Returns the folder of the newest complete checkpoint of a run on this host; nullopt on every
/// rank except the first of a host. Every rank calls it.
std::optional<std::filesystem::path> newest_in_memory(const std::filesystem::path& run,
                                                      const Cluster& cluster);

}  // namespace millrace
