// Where a rank keeps its last events when it fails or hangs (docs/faults.md).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "millrace/base/events/last_events.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// While one exists, write_last_events writes RUN/events/rank-0003.json where this rank sees the
/// run's folder, else a file of that name in a folder of its own under the system's temporary one,
/// which is told when it is written. One at a time.
class RankEvents {
 public:
  /// Every rank makes one. `folder`: the run's, by the chief's word. Borrows `cluster`.
  RankEvents(const Cluster& cluster, const std::filesystem::path& folder);

  /// Whether this rank sees the run's folder.
  bool sees_run() const { return !options_.is_private; }

  /// The events up to now, as the file has them.
  std::string text(std::string_view why) const;

 private:
  LastEventsOptions options_;
  LastEvents last_;
};

}  // namespace millrace
