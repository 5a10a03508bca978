// Finds the rank that arrived last at each exchange, and what delayed it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "millrace/base/text.h"
#include "millrace/cli/status/event_log.h"

namespace millrace::cli {
namespace {

constexpr double kLeastS = 1e-3;  // shorter delays do not count
constexpr double kMostOf = 0.5;   // fraction of the time; shorter events do not explain it

using Key = std::pair<std::string, std::int64_t>;  // name and number of an exchange
using ByRank = std::map<std::int64_t, const RankEvent*>;

bool is_exchange(const RankEvent& event) { return event.kind == "exchange"; }

/// Returns the event of these kinds that fills most of a time span; nullptr if none fills more than
/// `kMostOf` of it.
const RankEvent* longest_in(const EventLog& log, double from_s, double to_s,
                            std::initializer_list<std::string_view> kinds) {
  const RankEvent* longest = nullptr;
  double most = kMostOf * (to_s - from_s);
  for (const auto& event : log.events) {
    const auto inside = std::min(event.end_s(), to_s) - std::max(event.start_s, from_s);
    if (inside <= most || std::ranges::count(kinds, event.kind) == 0) continue;
    longest = &event;
    most = inside;
  }
  return longest;
}

std::string doing_between(const EventLog& log, double from_s, double to_s) {
  const auto* main =
      longest_in(log, from_s, to_s, {"data", "step", "callback", "checkpoint", "other"});
  if (!main) return "nothing recorded";
  auto text = main->detail;
  const RankEvent* part = nullptr;
  if (main->kind == "data") part = longest_in(log, from_s, to_s, {"stage"});
  if (main->kind == "callback") part = longest_in(log, from_s, to_s, {"evaluation"});
  if (part)
    text +=
        fmt::format("; '{}' {} on {} for {}", part->name, part->goes_on ? "has worked" : "worked",
                    part->detail, duration_text(part->seconds));
  return text;
}

const EventLog& log_of(const std::vector<EventLog>& ranks, std::int64_t rank) {
  return *std::ranges::find(ranks, rank, &EventLog::rank);
}

/// Handles an exchange at which all ranks have arrived.
std::optional<LateExchange> of_all(const std::vector<EventLog>& ranks, const ByRank& events) {
  const auto waited = [](const auto& entry) { return entry.second->seconds; };
  // A rank whose exchange goes on has waited at least this long.
  const auto [last, first] = std::ranges::minmax_element(events, {}, waited);
  const auto seconds = waited(*first) - waited(*last);
  if (seconds < kLeastS || last->second->goes_on) return std::nullopt;
  const auto& event = *last->second;
  return LateExchange{
      .exchange = event.name,
      .of = event.detail,
      .number = event.number,
      .end_s = event.end_s(),
      .late = {last->first},
      .seconds = seconds,
      .doing = doing_between(log_of(ranks, last->first), event.start_s - seconds, event.start_s)};
}

/// Handles an exchange at which some ranks have not arrived, or are not known to have arrived.
LateExchange of_missing(const std::vector<EventLog>& ranks, const ByRank& events) {
  const auto longest =
      std::ranges::max_element(events, {}, [](const auto& entry) { return entry.second->seconds; });
  const auto& event = *longest->second;
  LateExchange found{.exchange = event.name,
                     .of = event.detail,
                     .number = event.number,
                     .end_s = event.end_s(),
                     .goes_on = true,
                     .late = {},
                     .seconds = event.seconds};
  const EventLog* known = nullptr;
  for (const auto& log : ranks) {
    if (events.contains(log.rank)) continue;
    found.late.push_back(log.rank);
    if (!known && !log.events.empty()) known = &log;
  }
  if (known)
    found.doing = doing_between(*known, known->written_s - found.seconds, known->written_s);
  else
    found.doing = "unknown";
  // The rank that `doing` describes comes first.
  if (known)
    std::ranges::stable_partition(found.late, [&](auto rank) { return rank == known->rank; });
  return found;
}

}  // namespace

std::vector<LateExchange> late_exchanges(const std::vector<EventLog>& ranks) {
  std::map<Key, ByRank> exchanges;
  std::map<std::string, std::int64_t> begins;  // by name: the first number that all logs have
  for (const auto& log : ranks) {
    std::map<std::string, std::int64_t> own;
    for (const auto& event : log.events) {
      if (!is_exchange(event)) continue;
      exchanges[{event.name, event.number}].emplace(log.rank, &event);
      own.emplace(event.name, event.number);
    }
    for (const auto& [name, number] : own) begins[name] = std::max(begins[name], number);
  }
  std::vector<LateExchange> all;
  for (const auto& [key, events] : exchanges) {
    if (key.second < begins.at(key.first)) continue;
    if (events.size() == ranks.size()) {
      if (auto late = of_all(ranks, events)) all.push_back(std::move(*late));
    } else if (std::ranges::any_of(events,
                                   [](const auto& entry) { return entry.second->goes_on; })) {
      all.push_back(of_missing(ranks, events));
    }
  }
  std::ranges::stable_sort(all, {}, &LateExchange::end_s);
  return all;
}

}  // namespace millrace::cli
