// Checkpoints in the memory of every host: quicker than a disk, and there as long as one host is.
//
//   RUN/memory                                       "RUN-NUMBER/START-NUMBER", random ones
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

/// All ranks have the same weights after a step, so nothing but the states of the chief's callbacks
/// is sent. The first rank of each host writes. What hosts keep that were cut off from the newest
/// start that has saved something does not count: it may belong to other steps than those that were
/// taken without them.
class MemoryCheckpoints {
 public:
  /// For one start of a run, whose folder the chief alone sees. Every rank makes one. A host that
  /// cannot keep them, now or later, warns and goes on without.
  MemoryCheckpoints(const std::filesystem::path& run, const Cluster& cluster);

  /// Keeps this rank's part of a checkpoint, all of it on the chief; the one before goes. Every
  /// rank calls it at the same step. It is copied, then written in the background.
  void save(Checkpoint mine);

  /// The run no longer needs them.
  void remove();

 private:
  void or_go_on_without(const std::function<void()>& work);
  void remove_older(const std::filesystem::path& newest) const;

  const Cluster& cluster_;
  std::filesystem::path record_;  // RUN/memory
  std::string name_;              // what it is to say
  std::filesystem::path folder_;  // on this host; empty: it keeps none
  std::optional<CheckpointWriter> writer_;
  bool recorded_ = false;
};

/// The newest one of a run on this host that is whole, with its folder; nothing on other ranks than
/// a host's first. Every rank calls it.
std::optional<std::filesystem::path> newest_in_memory(const std::filesystem::path& run,
                                                      const Cluster& cluster);

}  // namespace millrace
