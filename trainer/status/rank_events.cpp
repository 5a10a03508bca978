#include "millrace/trainer/status/rank_events.h"

#include <fmt/format.h>
#include <unistd.h>

#include "millrace/base/digest.h"
#include "millrace/base/disk/record_file.h"
#include "millrace/base/events/event_text.h"
#include "millrace/base/files.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns a digest that distinguishes a run's folder from a folder of the same path on another
/// host.
std::string mark_of(const fs::path& folder) {
  try {
    return hex(digest(read_file(record_file_in(folder))));
  } catch (const std::exception&) {
    return "";
  }
}

LastEventsOptions options_of(const Cluster& cluster, const fs::path& folder) {
  LastEventsOptions options{.rank = cluster.rank(),
                            .name = cluster.size() > 1 ? cluster.name() : "rank 0",
                            .host = host_name(),
                            .at_sigterm = cluster.size() > 1};
  const auto mark = cluster.broadcast("mark of the run", cluster.is_chief() ? mark_of(folder) : "");
  options.file = events_file_in(fs::absolute(folder), cluster.rank());
  if (!cluster.is_chief() && (mark.empty() || mark_of(folder) != mark)) {
    options.is_private = true;
    options.file = fs::temp_directory_path() /
                   fmt::format("millrace-events-{}-{}", ::getuid(), folder.filename().string()) /
                   options.file.filename();
  }
  return options;
}

}  // namespace

RankEvents::RankEvents(const Cluster& cluster, const fs::path& folder)
    : options_(options_of(cluster, folder)), last_(options_) {}

std::string RankEvents::text(std::string_view why) const {
  return events_text({options_.rank, ::getpid(), options_.name, options_.host}, why);
}

}  // namespace millrace
