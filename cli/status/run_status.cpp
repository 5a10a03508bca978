#include "millrace/cli/status/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/disk/record_file.h"
#include "millrace/base/disk/status_files.h"
#include "millrace/base/errors.h"
#include "millrace/base/process/process_identity.h"
#include "millrace/base/text.h"
#include "millrace/cli/status/event_log.h"
#include "millrace/dataflow/serving/status.h"
#include "millrace/tools/report/run_files.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using report::RecordedState;

constexpr std::chrono::milliseconds kReadStatusEvery{50};
constexpr double kPeriods = 3;       // without a file until a rank is silent
constexpr double kGoneAfterS = 600;  // without a file until a rank of another machine is gone

std::int64_t starts_of(const report::RunFiles& files) {
  const auto& record = files.record;
  return record.is_object() && record.contains("starts")
             ? static_cast<std::int64_t>(record["starts"].size())
             : 0;
}

bool is_over(const report::RunFiles& files) {
  return files.state == RecordedState::done || files.state == RecordedState::stopped;
}

double age_of(const Json& file) { return wall_clock() - file.value("written", 0.); }

std::string state_in(const Json& file) { return file.is_null() ? "" : file.value("state", ""); }
bool is_training(const Json& file) { return state_in(file) == "training"; }

/// Returns the status files of the `start`-th start with the states of their ranks. Does not rely
/// on other machines' clocks: a rank that may be silent is watched until it writes again.
std::vector<std::pair<Json, RankState>> watch(const fs::path& run, std::int64_t start,
                                              std::vector<Json> files) {
  std::vector<std::pair<Json, RankState>> all;
  double timeout_s = 0;
  for (auto& file : files) {
    auto state = file.is_null() ? RankState::gone : rank_state(file);
    if (state == RankState::gone && !file.is_null()) {  // reads what it wrote at its end
      file = read_status_file(run, start, std::ssize(all));
      if (!file.is_null()) state = rank_state(file);
    }
    if (state == RankState::silent)
      timeout_s = std::max(timeout_s, kPeriods * file.value("every_s", 0.));
    all.emplace_back(std::move(file), state);
  }
  const auto began = Clock::now();
  const auto is_silent = [](const auto& one) { return one.second == RankState::silent; };
  while (std::ranges::any_of(all, is_silent) && seconds_since(began) < timeout_s) {
    std::this_thread::sleep_for(kReadStatusEvery);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      auto& [file, state] = all[rank];
      if (state != RankState::silent) continue;
      auto now = read_status_file(run, start, static_cast<std::int64_t>(rank));
      if (now.is_null() || now["written"] == file["written"]) continue;
      file = std::move(now);
      state = is_training(file) ? RankState::writes : RankState::gone;
    }
  }
  for (auto& [file, state] : all)
    if (state == RankState::silent && age_of(file) > kGoneAfterS &&
        file.value("system", "") != own_identity().system)
      state = RankState::gone;
  return all;
}

std::string why_of(const Json& file, RankState state) {
  if (file.is_null()) return "has written no status; check its access to the run folder";
  if (state == RankState::writes) return "";
  if (state == RankState::silent) return "no longer writes its status";
  return is_training(file) ? "its process has ended" : "its training has ended";
}

std::optional<serving::LinkKeys> keys_of(const Json& servers) {
  const auto own = servers.value("key", "");
  if (own.empty()) return std::nullopt;
  return serving::LinkKeys{serving::read_public_key(servers.value("server_key", "")),
                           serving::read_secret_key(own)};
}

/// Returns the data servers of the run. If they cannot be asked, the reason is each one's `why`.
std::vector<MemberStatus> ask_servers_of(const Json& file, bool asks,
                                         std::chrono::milliseconds timeout) {
  const auto& servers = file.at("data_servers");
  const std::vector<std::string> endpoints = servers.at("endpoints");
  std::string why;
  if (asks) try {
      return ask_servers(endpoints, keys_of(servers), timeout);
    } catch (const std::exception& problem) {
      why = problem.what();
    }
  std::vector<MemberStatus> members;
  for (const auto& endpoint : endpoints) members.push_back({.name = endpoint, .why = why});
  return members;
}

RunState state_of(const report::RunFiles& files,
                  const std::vector<std::pair<Json, RankState>>& ranks) {
  const auto any = [&](RankState state) {
    return std::ranges::any_of(ranks, [&](const auto& one) { return one.second == state; });
  };
  if (is_over(files))
    return files.state == RecordedState::done ? RunState::done : RunState::stopped;
  if (any(RankState::writes)) return RunState::training;
  const bool is_locked = files.state == RecordedState::training;
  if (is_locked) return ranks.empty() ? RunState::starting : RunState::silent;
  if (files.state == RecordedState::unknown) return RunState::unknown;
  return any(RankState::silent) ? RunState::silent : RunState::broken;
}

/// Returns "rank 1 (b): the disk is full" for the rank that failed first.
std::string failure_of(const fs::path& run, const std::vector<MemberStatus>& ranks,
                       const std::vector<std::pair<Json, RankState>>& files) {
  const auto logs = failure_logs(run, ranks);
  // mpirun sends SIGTERM to the other ranks if one was killed.
  if (!logs.empty() && logs.front().why != "SIGTERM")
    return fmt::format("{}: {}", logs.front().name, logs.front().why);
  const auto named = [&](std::size_t rank) {
    return ranks.size() == 1 ? ranks[rank].name : ranks[rank].with_host();
  };
  for (std::size_t rank = 0; rank < files.size(); ++rank)
    if (const auto& file = files[rank].first; state_in(file) == "failed")
      return fmt::format("{}: {}", named(rank), sentence_of(file.value("reason", "")));
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    const auto number = static_cast<std::int64_t>(rank);
    if (is_training(files[rank].first) && !std::ranges::count(logs, number, &EventLog::rank))
      return named(rank) + ": killed, or its host failed";
  }
  return logs.empty() ? "" : fmt::format("{}: {}", logs.front().name, logs.front().why);
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
    // config.toml is written only at each start; the run's record is rewritten during training.
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

std::vector<Json> newest_status_files(const fs::path& run) {
  return read_status_files(run, starts_of(report::read_run_files(run)));
}

MemberStatus rank_of(const Json& file, std::size_t number) {
  MemberStatus member{.name = fmt::format("rank {}", number)};
  if (file.is_null()) return member;
  member.host = file.value("host", "");
  member.process = file.value("process", std::int64_t{0});
  member.age_s = std::max(0., age_of(file));
  member.status = file.value("status", Json());
  return member;
}

RankState rank_state(const Json& file) {
  if (!is_training(file)) return RankState::gone;
  const auto running = is_running({.system = file.value("system", ""),
                                   .number = file.value("process", std::int64_t{0}),
                                   .start = file.value("process_start", std::int64_t{0})});
  if (running == false) return RankState::gone;
  const auto age_s = age_of(file);
  const bool is_fresh = age_s >= 0 && age_s <= kPeriods * file.value("every_s", 0.);
  return running && is_fresh ? RankState::writes : RankState::silent;
}

std::vector<MemberStatus> ask_servers(const std::vector<std::string>& endpoints,
                                      const std::optional<serving::LinkKeys>& keys,
                                      std::chrono::milliseconds timeout) {
  auto answers = serving::ask_status(endpoints, keys, timeout);
  std::vector<MemberStatus> members;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    auto& answer = answers[i];
    const bool answers_it = answer.kind == serving::StatusAnswer::Kind::answered;
    members.push_back({.name = endpoints[i],
                       .answers = answers_it,
                       .why = std::move(answer.why),
                       .age_s = answers_it ? 0. : -1.,
                       .status = std::move(answer.status)});
  }
  return members;
}

RunStatus read_run_status(const fs::path& run, std::chrono::milliseconds timeout) {
  auto files = report::read_run_files(run);
  const bool has_ended = is_over(files);
  auto written = read_status_files(run, starts_of(files));
  const auto of_servers = std::ranges::find_if(written, std::not_fn(&Json::is_null));
  std::future<std::vector<MemberStatus>> servers;
  if (of_servers != written.end())
    servers = std::async(std::launch::async, [file = *of_servers, has_ended, timeout] {
      return ask_servers_of(file, !has_ended, timeout);
    });
  const auto ranks = watch(run, starts_of(files), std::move(written));
  const auto any_writes =
      std::ranges::count(ranks, RankState::writes, &std::pair<Json, RankState>::second);
  if (!ranks.empty() && !has_ended && any_writes == 0) files = report::read_run_files(run);
  RunStatus status{.run = run,
                   .standing = files.state_text,
                   .log_end = files.log_end,
                   .timeout_s = std::chrono::duration<double>(timeout).count()};
  for (const auto& [file, state] : ranks) {
    auto& rank = status.ranks.emplace_back(rank_of(file, status.ranks.size()));
    if (is_over(files)) continue;
    rank.answers = state == RankState::writes;
    rank.why = why_of(file, state);
  }
  if (servers.valid()) status.servers = servers.get();
  status.state = state_of(files, ranks);
  if (status.state == RunState::broken) status.failure = failure_of(run, status.ranks, ranks);
  return status;
}

Json to_json(const MemberStatus& member) {
  return {{"name", member.name},       {"host", member.host},
          {"process", member.process}, {"answers", member.answers},
          {"why", member.why},         {"heard_s", member.age_s < 0 ? Json() : Json(member.age_s)},
          {"status", member.status}};
}

Json to_json(const RunStatus& run) {
  const auto list_of = [](const std::vector<MemberStatus>& members) {
    auto all = Json::array();
    for (const auto& member : members) all.push_back(to_json(member));
    return all;
  };
  auto also_training = Json::array();
  for (const auto& other : run.also_training) also_training.push_back(other.string());
  return {{"run", run.run.string()},         {"state", name_of(run.state)},
          {"standing", run.standing},        {"verdict", verdict(run)},
          {"patience_s", run.timeout_s},     {"ranks", list_of(run.ranks)},
          {"servers", list_of(run.servers)}, {"log_end", run.log_end},
          {"also_training", also_training}};
}

}  // namespace millrace::cli
