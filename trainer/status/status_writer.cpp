#include "millrace/trainer/status/status_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/disk/record_file.h"
#include "millrace/base/disk/status_files.h"
#include "millrace/base/errors.h"
#include "millrace/base/events/event_text.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_identity.h"
#include "millrace/dataflow/serving/status.h"
#include "millrace/trainer/cluster/mpi_world.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::chrono::milliseconds kTickPeriod{500};  // period of checks for a request of events
constexpr int kTicksPerFile = 4;
constexpr double kWriteEveryS = std::chrono::duration<double>(kTickPeriod * kTicksPerFile).count();

std::string absolute_text(const std::string& file) {
  return file.empty() ? "" : fs::absolute(file).string();
}

/// Returns the activity of the training thread, progress, memory and traffic (docs/runs.md).
ordered_json rank_status(const Cluster& cluster, const Activity& activity) {
  const auto now = activity.now();
  const auto progress = activity.progress();
  const auto data = activity.data();
  auto* world = cluster.world();
  const auto waiting = world ? world->waiting() : std::nullopt;
  const auto traffic = world ? world->traffic() : MpiWorld::Traffic();

  ordered_json json = {{"rank", cluster.rank()}};
  json.update(serving::process_status());
  json["step"] = progress.step;
  json["total_steps"] = progress.total_steps;
  json["epoch"] = progress.epochs;
  json["images"] = progress.images;
  json["images_per_s"] = progress.images_per_s;
  // A step or a callback may be waiting for other ranks.
  json["where"] = waiting ? "exchange" : now.where;
  json["doing"] = now.what;
  json["for_s"] = seconds_since(waiting ? waiting->since : now.since);
  json["sign_of_life_s"] = seconds_since(now.last_progress);
  json["exchange"] = nullptr;
  if (waiting) json["exchange"] = {{"what", waiting->what}, {"of", waiting->place}};
  json["work"] = data ? serving::work_status(*data) : ordered_json::array();
  json["stages"] = ordered_json::array();
  for (const auto& stage : data ? data->stages : std::vector<StageReport>())
    json["stages"].push_back(
        {{"stage", stage.name}, {"items", stage.items}, {"waiting", stage.waiting}});
  json["received_bytes"] = traffic.received + serving::received_bytes();
  json["sent_bytes"] = traffic.sent;
  json["metrics"] = progress.metrics;
  return json;
}

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

void replace(const fs::path& file, const std::string& text) {
  const std::string_view part = text;
  replace_file(file, {&part, 1});
}

}  // namespace

RankEvents::RankEvents(const Cluster& cluster, const fs::path& folder)
    : options_(options_of(cluster, folder)), last_(options_) {}

std::string RankEvents::text(std::string_view why) const {
  return events_text({options_.rank, ::getpid(), options_.name, options_.host}, why);
}

StatusWriter::StatusWriter(const Cluster& cluster, const Activity& activity,
                           const DataOptions& data, fs::path folder, std::int64_t start)
    : cluster_(cluster), activity_(activity), events_(cluster, folder), folder_(std::move(folder)) {
  if (cluster.is_chief()) try {
      fs::remove_all(status_folder(folder_));
      fs::create_directory(status_folder(folder_));
    } catch (const std::exception& problem) {
      warn(problem);
    }
  // The other ranks write after rank 0 has removed the old files.
  start = std::stoll(cluster.broadcast("start of the run", std::to_string(start)));
  const auto process = own_identity();
  file_ = {{"format", kStatusFormat},
           {"start", start},
           {"rank", cluster.rank()},
           {"ranks", cluster.size()},
           {"host", host_name()},
           {"process", process.number},
           {"process_start", process.start},
           {"system", process.system},
           {"began", wall_clock()},
           {"every_s", kWriteEveryS},
           {"data_servers",
            {{"endpoints", data.source},
             {"key", absolute_text(data.source_key)},
             {"server_key", absolute_text(data.source_server_key)}}}};
  if (events_.sees_run()) {
    on_tick();
    ticker_.emplace(kTickPeriod, [this] { on_tick(); });
  } else {
    warn(Error("the run folder is not visible on this host; share it between the hosts"));
  }
}

void StatusWriter::end(std::string_view state, std::string_view reason) {
  if (!ticker_) return;
  ticker_.reset();
  write(state, reason);
}

void StatusWriter::on_tick() {
  if (ticks_++ % kTicksPerFile == 0) write("training", "");
  write_requested_events();
}

void StatusWriter::write(std::string_view state, std::string_view reason) try {
  auto file = file_;
  file["written"] = wall_clock();
  file["state"] = state;
  file["reason"] = reason;
  file["status"] = rank_status(cluster_, activity_);
  replace(status_file(folder_, cluster_.rank()), serving::status_text(file) + "\n");
} catch (const std::exception& problem) {
  warn(problem);
}

/// Writes the last events if the request has a new text.
void StatusWriter::write_requested_events() try {
  const auto file = ask_events_file(folder_);
  if (!fs::exists(file)) return;
  auto asked = read_file(file);
  if (asked == answered_) return;
  replace(asked_events_file(folder_, cluster_.rank()), events_.text(asked));
  answered_ = std::move(asked);
} catch (const std::exception& problem) {
  warn(problem);
}

void StatusWriter::warn(const std::exception& problem) {
  if (std::exchange(has_warned_, true)) return;
  log_warning("`trainer status` will not show this rank: {}", problem.what());
}

}  // namespace millrace
