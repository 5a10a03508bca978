#include "millrace/cli/status/fleet_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <optional>
#include <system_error>
#include <utility>

#include "millrace/base/disk/record_file.h"
#include "millrace/base/errors.h"
#include "millrace/cli/status/event_log.h"
#include "millrace/tools/report/run_files.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using serving::StatusAnswer;
using Kind = StatusAnswer::Kind;

/// Asks the members of one kind; what keeps it from asking is why none answers.
template <class Sources>
std::vector<StatusAnswer> ask(std::size_t members, std::chrono::milliseconds patience,
                              const Sources& sources) try {
  return serving::StatusLinks(sources()).ask(patience);
} catch (const std::exception& problem) {
  return std::vector<StatusAnswer>(members, StatusAnswer{Kind::refused, problem.what(), {}});
}

std::vector<MemberView> views(const std::vector<FleetMember>& members,
                              const std::vector<StatusAnswer>& answers) {
  std::vector<MemberView> views;
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto& view = views.emplace_back(MemberView{.member = members[i]});
    if (members[i].heard > 0) view.heard_s = std::max(0., wall_clock() - members[i].heard);
    if (answers.empty()) continue;
    view.why = answers[i].why;
    if (answers[i].kind != Kind::answered) continue;
    view.answers = true;
    view.heard_s = 0;
    view.member.status = answers[i].status;
  }
  return views;
}

RunState state_of(const report::RunFiles& files, const FleetView& fleet,
                  const std::vector<StatusAnswer>& answers, bool is_of_this_start) {
  using report::Standing;
  if (files.standing == Standing::done) return RunState::done;
  if (files.standing == Standing::stopped) return RunState::stopped;
  if (std::ranges::any_of(fleet.ranks, &MemberView::answers)) return RunState::training;
  const bool is_locked = files.standing == Standing::training;
  if (is_locked) return is_of_this_start ? RunState::silent : RunState::starting;
  if (files.standing == Standing::unknown) return RunState::unknown;
  if (!is_of_this_start) return RunState::broken;
  // Locks are seen on their own host alone.
  const bool may_live =
      fleet.ranks.front().member.host != host_name() && answers.front().kind == Kind::silent;
  return may_live ? RunState::silent : RunState::broken;
}

}  // namespace

std::string name_of(RunState state) {
  constexpr const char* kNames[] = {"starting", "training", "silent", "done",
                                    "stopped",  "broken",   "unknown"};
  return kNames[static_cast<std::size_t>(state)];
}

NamedRun find_named_run(const fs::path& folder) {
  if (!record_file_in(folder).empty()) return {folder, {}};
  std::vector<std::pair<fs::file_time_type, fs::path>> runs, training;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (record_file_in(entry.path()).empty()) continue;
    // Written at each start; the record is written again while the run trains.
    std::error_code missing;
    runs.emplace_back(fs::last_write_time(entry.path() / "config.toml", missing), entry.path());
    if (report::is_locked(entry.path())) training.push_back(runs.back());
  }
  auto& candidates = training.empty() ? runs : training;
  if (candidates.empty()) return {folder, {}};
  std::ranges::sort(candidates, std::greater());
  NamedRun named{candidates.front().second, {}};
  for (std::size_t i = 1; i < training.size(); ++i)
    named.also_training.push_back(training[i].second);
  return named;
}

FleetView look_at_fleet(const fs::path& run, std::chrono::milliseconds patience) {
  const auto files = report::read_run_files(run);
  FleetView view{.run = run,
                 .standing = files.standing_text,
                 .log_end = files.log_end,
                 .patience_s = std::chrono::duration<double>(patience).count()};
  const auto starts = files.record.is_object() && files.record.contains("starts")
                          ? static_cast<std::int64_t>(files.record["starts"].size())
                          : 0;
  const auto fleet = read_fleet_file(run);
  const bool is_of_this_start = fleet && fleet->start == starts && !fleet->ranks.empty();
  std::vector<StatusAnswer> ranks, servers;
  const bool has_ended =
      files.standing == report::Standing::done || files.standing == report::Standing::stopped;
  if (is_of_this_start && !has_ended) {
    auto of_servers = std::async(std::launch::async, [&] {
      return ask(fleet->servers.size(), patience, [&] { return server_sources(*fleet); });
    });
    ranks = ask(fleet->ranks.size(), patience,
                [&] { return rank_sources(*fleet, serving::read_secret_key(run / kFleetKey)); });
    servers = of_servers.get();
  }
  if (is_of_this_start) {
    view.ranks = views(fleet->ranks, ranks);
    view.servers = views(fleet->servers, servers);
  }
  view.state = state_of(files, view, ranks, is_of_this_start);
  if (view.state == RunState::broken && is_of_this_start)
    if (const auto log = first_to_fail(run, fleet->ranks))
      view.failure = fmt::format("{}: {}", log->name, log->why);
  return view;
}

Json to_json(const FleetView& fleet) {
  const auto members = [](const std::vector<MemberView>& views) {
    auto all = Json::array();
    for (const auto& [member, answers, why, heard_s] : views)
      all.push_back({{"name", member.name},
                     {"host", member.host},
                     {"process", member.process},
                     {"answers", answers},
                     {"why", why},
                     {"heard_s", heard_s < 0 ? Json() : Json(heard_s)},
                     {"status", member.status}});
    return all;
  };
  auto also_training = Json::array();
  for (const auto& run : fleet.also_training) also_training.push_back(run.string());
  return {{"run", fleet.run.string()},         {"state", name_of(fleet.state)},
          {"standing", fleet.standing},        {"verdict", verdict(fleet)},
          {"patience_s", fleet.patience_s},    {"ranks", members(fleet.ranks)},
          {"servers", members(fleet.servers)}, {"log_end", fleet.log_end},
          {"also_training", also_training}};
}

}  // namespace millrace::cli
