#include "millrace/cli/status/event_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/tools/report/run_files.h"
#include "millrace/trainer/status/rank_events.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using serving::StatusAnswer;

constexpr double kMicroseconds = 1e-6;

SeenEvent event_of(const Json& json) {
  const auto& more = json.at("args");
  const bool goes_on = json.at("ph") == "B";
  return {
      .kind = json.at("cat"),
      .name = json.at("name"),
      .detail = more.at("detail"),
      .number = more.value("number", std::int64_t{-1}),
      .bytes = more.value("bytes", std::int64_t{0}),
      .thread = json.at("tid"),
      .start_s = json.at("ts").get<double>() * kMicroseconds,
      .seconds = (goes_on ? more.at("goes_on_us") : json.at("dur")).get<double>() * kMicroseconds,
      .goes_on = goes_on};
}

/// In the run's folder.
fs::path file_of(std::int64_t number) { return fs::path(kEventsFolder) / events_file_name(number); }

/// What a rank has written in this start of the run; null: nothing.
Json written_by(const fs::path& run, std::int64_t number, const FleetMember& rank) try {
  auto json = Json::parse(read_file(run / file_of(number)));
  const auto& who = json.at("traceEvents").at(0).at("args");
  return who.at("process") == rank.process && who.at("host") == rank.host ? json : Json();
} catch (const std::exception&) {  // there is none, or half of one
  return {};
}

}  // namespace

EventLog read_event_log(const Json& json, std::string from) try {
  const auto& all = json.at("traceEvents");
  const auto& who = all.at(0).at("args");
  EventLog log{.rank = all.at(0).at("pid"),
               .name = who.at("name"),
               .from = std::move(from),
               .why = who.at("why"),
               .written_s = who.at("written").get<double>() * kMicroseconds};
  std::transform(all.begin() + 1, all.end(), std::back_inserter(log.events), event_of);
  std::ranges::stable_sort(log.events, {}, &SeenEvent::start_s);
  return log;
} catch (const Json::exception& problem) {
  throw Error(fmt::format("{}: the events cannot be read ({})", from, problem.what()));
}

std::optional<EventLog> first_to_fail(const fs::path& run, const std::vector<FleetMember>& ranks) {
  std::optional<EventLog> first;
  for (std::int64_t number = 0; const auto& rank : ranks) {
    const auto json = written_by(run, number, rank);
    if (!json.is_null()) {
      auto log = read_event_log(json, file_of(number).string());
      if (!first || log.written_s < first->written_s) first = std::move(log);
    }
    ++number;
  }
  return first;
}

EventLogs collect_event_logs(const fs::path& run, std::chrono::milliseconds patience) {
  report::read_run_files(run);  // or it is no run
  const auto fleet = read_fleet_file(run);
  if (!fleet)
    throw Error(fmt::format("{}: no rank of this run can be found, as there is no {}", run.string(),
                            kFleetFile));
  std::vector<StatusAnswer> answers;
  try {
    const auto keys = serving::read_secret_key(run / kFleetKey);
    answers =
        serving::StatusLinks(rank_sources(*fleet, keys), serving::Question::events).ask(patience);
  } catch (const std::exception& problem) {
    answers.assign(fleet->ranks.size(), {StatusAnswer::Kind::refused, problem.what(), {}});
  }
  EventLogs logs{.run = run};
  for (std::size_t i = 0; i < fleet->ranks.size(); ++i) {
    const auto& rank = fleet->ranks[i];
    const auto number = static_cast<std::int64_t>(i);
    // An older version tells its status instead.
    const bool answers_it =
        answers[i].status.is_object() && answers[i].status.contains("traceEvents");
    const auto json = answers_it ? Json(answers[i].status) : written_by(run, number, rank);
    if (json.is_null()) {
      logs.ranks.push_back({.rank = number,
                            .name = fmt::format("{} ({})", rank.name, rank.host),
                            .from = "",
                            .why = answers[i].why});
      continue;
    }
    logs.ranks.push_back(
        read_event_log(json, answers_it ? "it was asked" : file_of(number).string()));
    for (const auto& event : json.at("traceEvents")) logs.trace.push_back(event);
  }
  return logs;
}

}  // namespace millrace::cli
