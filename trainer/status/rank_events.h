// The file to which a rank writes its last events when it fails or hangs (docs/distributed.md).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "millrace/base/events/last_events.h"
#include "millrace/trainer/cluster/cluster.h"

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

}  // namespace millrace
