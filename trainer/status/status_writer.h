// What makes `trainer status RUN` work: each rank keeps RUN/status/rank-3.json up to date. It also
// keeps its last events, for when it fails.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/trainer/activity.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/status/rank_events.h"
#include "millrace/trainer/ticker.h"

namespace millrace {

/// Writes the status file of a rank during one start of a run. Its own thread does so every two
/// seconds, also while the training hangs; no step waits for it. A rank that cannot write warns
/// once, and trains on.
class StatusWriter {
 public:
  /// Every rank makes one; the chief removes the files of earlier starts first. `folder`: the
  /// run's. `start`: its number from 1, by the chief. Borrows `cluster` and `activity`.
  StatusWriter(const Cluster& cluster, const Activity& activity, const DataOptions& data,
               std::filesystem::path folder, std::int64_t start);
  StatusWriter(const StatusWriter&) = delete;

  /// Writes the file a last time. `state`: "done", "stopped" or "failed"; `reason`: of a stop or a
  /// failure.
  void end(std::string_view state, std::string_view reason);

 private:
  void look();
  void write(std::string_view state, std::string_view reason);
  void answer();
  void warn(const std::exception& problem);

  const Cluster& cluster_;
  const Activity& activity_;
  const RankEvents events_;
  const std::filesystem::path folder_;
  nlohmann::ordered_json file_;  // what stays the same
  std::string answered_;         // the last text of ask-events
  int looks_ = 0;
  bool has_warned_ = false;
  std::optional<Ticker> ticker_;  // uses the others
};

}  // namespace millrace
