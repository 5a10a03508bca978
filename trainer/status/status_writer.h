// Writes RUN/status/rank-3.json of each rank for `trainer status RUN`, and the last events of the
// rank on request and when it fails or hangs (docs/distributed.md).
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "millrace/base/events/last_events.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/trainer/activity.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/ticker.h"

namespace millrace {

/// Sets the file of write_last_events during its lifetime: RUN/events/rank-0003.json if this rank
/// sees the run's folder, else a file of that name in a private folder below the system's temporary
/// folder, whose path is logged when it is written. Only one object may exist at a time.
class RankEvents {
 public:
  /// Every rank constructs one. `folder`: the run's folder as broadcast by rank 0. Borrows
  /// `cluster`.
  RankEvents(const Cluster& cluster, const std::filesystem::path& folder);

  /// Returns true if this rank sees the run's folder.
  bool sees_run() const { return !options_.is_private; }

  /// Returns the events up to now in the format of the file.
  std::string text(std::string_view why) const;

 private:
  LastEventsOptions options_;
  LastEvents last_;
};

/// Writes the status file of a rank during one start of a run. A separate thread writes it every
/// two seconds, even if the training hangs; no step waits for it. A rank that cannot write warns
/// once and continues training.
class StatusWriter {
 public:
  /// Every rank constructs one; rank 0 first removes the files of earlier starts. `folder`: the
  /// run's folder. `start`: number of the start on rank 0, from 1. Borrows `cluster` and
  /// `activity`.
  StatusWriter(const Cluster& cluster, const Activity& activity, const DataOptions& data,
               std::filesystem::path folder, std::int64_t start);
  StatusWriter(const StatusWriter&) = delete;

  /// Writes the file a last time. `state`: "done", "stopped" or "failed". `reason`: of a stop or
  /// failure.
  void end(std::string_view state, std::string_view reason);

 private:
  void on_tick();
  void write(std::string_view state, std::string_view reason);
  void write_requested_events();
  void warn(const std::exception& problem);

  const Cluster& cluster_;
  const Activity& activity_;
  const RankEvents events_;
  const std::filesystem::path folder_;
  nlohmann::ordered_json file_;  // constant part of the status file
  std::string answered_;         // last processed text of the file ask-events
  int ticks_ = 0;
  bool has_warned_ = false;
  std::optional<Ticker> ticker_;  // last member, since its thread uses the others
};

}  // namespace millrace
