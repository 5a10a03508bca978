#include "millrace/cli/status/event_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>

#include "millrace/base/clock.h"
#include "millrace/base/disk/status_files.h"
#include "millrace/base/errors.h"
#include "millrace/base/events/last_events.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kMicroseconds = 1e-6;
constexpr std::chrono::milliseconds kReadEvery{50};
const std::string kAsked = "on request";

RankEvent event_of(const Json& json) {
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

/// Returns the event file's name for messages.
std::string name_of_file(const fs::path& run, std::size_t rank) {
  return events_file_in(run, static_cast<std::int64_t>(rank)).lexically_relative(run).string();
}

/// Returns the events that a rank wrote in this start of the run because it failed or hung; null if
/// none.
Json written_by(const fs::path& run, std::size_t number, const MemberStatus& rank) try {
  auto json = Json::parse(read_file(events_file_in(run, static_cast<std::int64_t>(number))));
  const auto& who = json.at("traceEvents").at(0).at("args");
  return who.at("process") == rank.process && who.at("host") == rank.host ? json : Json();
} catch (const std::exception&) {  // no file, or an incomplete one
  return {};
}

std::string text_or_empty(const fs::path& file) {
  std::error_code unreadable;
  return fs::exists(file, unreadable) ? read_file(file) : "";
}

/// Requests the events of all ranks and waits up to `timeout` for those that may be alive. Returns
/// one answer per rank; null = no answer.
std::vector<Json> ask_ranks(const fs::path& run, const std::vector<Json>& files,
                            std::chrono::milliseconds timeout) {
  std::vector<Json> answers(files.size());
  std::vector<std::string> before;
  for (std::size_t rank = 0; rank < files.size(); ++rank)
    before.push_back(text_or_empty(asked_events_file(run, static_cast<std::int64_t>(rank))));
  const auto asked = fmt::format("asked by process {} at {:.6f}", ::getpid(), wall_clock());
  const std::string_view part = asked;
  replace_file(ask_events_file(run), {&part, 1});
  const auto end = Clock::now() + timeout;
  while (true) {
    bool waits = false;
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
      if (files[rank].is_null() || !answers[rank].is_null()) continue;
      const auto text = text_or_empty(asked_events_file(run, static_cast<std::int64_t>(rank)));
      if (text != before[rank])
        answers[rank] = Json::parse(text);
      else
        waits |= rank_state(files[rank]) != RankState::gone;
    }
    if (!waits || Clock::now() > end) return answers;
    std::this_thread::sleep_for(kReadEvery);
  }
}

constexpr std::size_t kLast = 10, kWorst = 5;  // exchanges shown: the last, and the latest before
constexpr std::size_t kShownAlone = 20;        // events shown of a run with one rank

std::string names_of(const std::vector<EventLog>& ranks, const std::vector<std::int64_t>& which) {
  std::vector<std::string> names;
  for (const auto rank : which)
    names.push_back(std::ranges::find(ranks, rank, &EventLog::rank)->name);
  return joined(names);
}

std::string line_of(const RankEvent& event) {
  const auto length = event.seconds < 0.1 ? fmt::format("{:.1f} ms", event.seconds * 1e3)
                                          : duration_text(event.seconds);
  return fmt::format("  {:>9}{} {} {}: {}\n", length, event.goes_on ? " so far," : ",", event.kind,
                     event.name, event.detail);
}

std::string text_of_rank(const EventLog& log) {
  if (log.from.empty())
    return fmt::format(
        "{}: no events ({}, and no file in events/; the rank's own log may name one)\n", log.name,
        log.why);
  auto text = fmt::format("{}: {} events, {} ago, {}\n", log.name, log.events.size(),
                          duration_text(std::max(0., wall_clock() - log.written_s)),
                          log.from == kAsked ? log.from : log.from + ": " + log.why);
  for (const auto& event : log.events)
    if (event.goes_on) text += line_of(event);
  return text;
}

/// Returns the last exchanges, and those before them with the largest delays.
std::vector<LateExchange> chosen(std::vector<LateExchange> all) {
  if (all.size() <= kLast) return all;
  const auto older = all.size() - kLast;
  std::vector<std::size_t> worst;
  for (std::size_t i = 0; i < older; ++i) worst.push_back(i);
  std::ranges::stable_sort(worst, std::ranges::greater(), [&](auto i) { return all[i].seconds; });
  if (worst.size() > kWorst) worst.resize(kWorst);
  std::ranges::sort(worst);
  std::vector<LateExchange> few;
  for (const auto i : worst) few.push_back(std::move(all[i]));
  std::ranges::move(all.begin() + static_cast<std::ptrdiff_t>(older), all.end(),
                    std::back_inserter(few));
  return few;
}

std::string text_of(const LateExchange& one, const std::vector<EventLog>& ranks) {
  const auto whose = names_of(ranks, one.late);
  const auto seconds =
      one.seconds < 0.1 ? fmt::format("{:.0f} ms", one.seconds * 1e3) : duration_text(one.seconds);
  return fmt::format("  {}, '{}' no. {}: {}\n      {}\n", one.of, one.exchange, one.number + 1,
                     one.goes_on
                         ? fmt::format("{} not arrived for {}",
                                       whose + (one.late.size() == 1 ? " has" : " have"), seconds)
                         : fmt::format("{} arrived {} after the first", whose, seconds),
                     one.doing);
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
  std::ranges::stable_sort(log.events, {}, &RankEvent::start_s);
  return log;
} catch (const Json::exception& problem) {
  throw Error(fmt::format("{}: cannot read the events ({})", from, problem.what()));
}

std::vector<EventLog> failure_logs(const fs::path& run, const std::vector<MemberStatus>& ranks) {
  std::vector<EventLog> logs;
  for (std::size_t number = 0; number < ranks.size(); ++number) {
    const auto json = written_by(run, number, ranks[number]);
    if (!json.is_null()) logs.push_back(read_event_log(json, name_of_file(run, number)));
  }
  std::ranges::stable_sort(logs, {}, &EventLog::written_s);
  return logs;
}

EventLogs collect_event_logs(const fs::path& run, std::chrono::milliseconds timeout) {
  const auto files = newest_status_files(run);
  if (files.empty())
    throw Error(
        fmt::format("{}: no rank has written its status; the run is starting, cannot write to its "
                    "folder, or is of an older version",
                    run.string()));
  std::string why = "no answer";
  std::vector<Json> answers(files.size());
  try {
    answers = ask_ranks(run, files, timeout);
  } catch (const std::exception& problem) {  // such as a read-only folder
    why = problem.what();
  }
  EventLogs logs{.run = run};
  for (std::size_t number = 0; number < files.size(); ++number) {
    const auto rank = rank_of(files[number], number);
    auto json = std::move(answers[number]);
    const bool answers_it = !json.is_null();
    if (answers_it)
      json.at("traceEvents").at(0).at("args")["why"] = kAsked;
    else
      json = written_by(run, number, rank);
    if (json.is_null()) {
      logs.ranks.push_back({.rank = static_cast<std::int64_t>(number),
                            .name = rank.with_host(),
                            .from = "",
                            .why = why});
      continue;
    }
    logs.ranks.push_back(read_event_log(json, answers_it ? kAsked : name_of_file(run, number)));
    for (const auto& event : json.at("traceEvents")) logs.trace.push_back(event);
  }
  return logs;
}

Json to_json(const EventLogs& logs) {
  auto ranks = Json::array(), late = Json::array();
  for (const auto& log : logs.ranks)
    ranks.push_back({{"rank", log.rank},
                     {"name", log.name},
                     {"from", log.from},
                     {"why", log.why},
                     {"events", log.events.size()}});
  for (const auto& one : late_exchanges(logs.ranks))
    late.push_back({{"exchange", one.exchange},
                    {"of", one.of},
                    {"number", one.number},
                    {"goes_on", one.goes_on},
                    {"ranks", one.late},
                    {"late_s", one.seconds},
                    {"doing", one.doing}});
  return {
      {"run", logs.run.string()}, {"ranks", ranks}, {"late", late}, {"traceEvents", logs.trace}};
}

std::string to_text(const EventLogs& logs) {
  auto text = fmt::format("{}: last events of the ranks\n\n", logs.run.string());
  for (const auto& log : logs.ranks) text += text_of_rank(log);
  if (logs.ranks.size() == 1) {
    const auto& events = logs.ranks.front().events;
    if (events.empty()) return text;
    text += "\nEarlier events:\n";
    std::vector<RankEvent> ended;
    std::ranges::copy_if(events, std::back_inserter(ended), std::not_fn(&RankEvent::goes_on));
    std::ranges::stable_sort(ended, {}, &RankEvent::end_s);
    for (auto i = ended.size() - std::min(ended.size(), kShownAlone); i < ended.size(); ++i)
      text += line_of(ended[i]);
    return text;
  }
  const auto late = chosen(late_exchanges(logs.ranks));
  text += late.empty() ? "\nNo rank was late in an exchange that all ranks recorded.\n"
                       : "\nLate ranks in exchanges, and what they did meanwhile:\n";
  for (const auto& one : late) text += text_of(one, logs.ranks);
  return text;
}

}  // namespace millrace::cli
