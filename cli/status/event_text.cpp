// The text of `trainer status --events`.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "millrace/base/clock.h"
#include "millrace/base/disk/status_files.h"
#include "millrace/base/text.h"
#include "millrace/cli/status/event_log.h"

namespace millrace::cli {
namespace {

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
                          log.from == "on request" ? log.from : log.from + ": " + log.why);
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
