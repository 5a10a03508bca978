// What makes `trainer status RUN` work: every rank answers who asks, and the chief keeps a file of
// where, and of what all said last. Each also keeps its last events for when it fails.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/serving/status_door.h"
#include "millrace/trainer/activity.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/status/fleet_file.h"
#include "millrace/trainer/status/rank_events.h"

namespace millrace {

/// Of one start of a run, while it lives. Threads of its own answer and ask; they hold nothing that
/// a step waits for. Where ranks cannot listen, the chief warns, and training goes on without.
class Fleet {
 public:
  /// Every rank makes one. `folder`, of the run, and `start`, its number from 1, are the chief's.
  /// Borrows `cluster` and `activity`.
  Fleet(const Cluster& cluster, const Activity& activity, const DataOptions& data,
        std::filesystem::path folder, std::int64_t start);
  /// The chief writes the file a last time.
  ~Fleet();
  Fleet(const Fleet&) = delete;

 private:
  std::string make_key() const;
  FleetMember listen(const serving::KeyPair& keys);
  void watch(const std::stop_token& stop, const serving::KeyPair& keys);
  void write();

  const Cluster& cluster_;
  const Activity& activity_;
  const RankEvents events_;
  const std::filesystem::path folder_;
  FleetFile file_;  // of the chief's thread while that runs
  std::unique_ptr<serving::StatusDoor> door_;
  bool has_failed_to_write_ = false;
  std::jthread watch_;  // of the chief
};

}  // namespace millrace
