// Finds the rank that the others wait for.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "millrace/base/text.h"
#include "millrace/cli/status/run_status.h"

namespace millrace::cli {
namespace {

constexpr double kStillS = 10;  // without progress

double seconds(const Json& status, const char* key) { return status.value(key, 0.); }

bool waits_for_others(const MemberStatus& rank) {
  return rank.status.value("where", "") == "exchange";
}

/// Returns "'agreement on the step' of step 6".
std::string exchange_text(const Json& status) {
  const auto& exchange = status.at("exchange");
  if (exchange.is_null()) return "an exchange";
  return fmt::format("'{}' of {}", exchange.value("what", ""), exchange.value("of", ""));
}

/// Returns what a rank does, and for how long.
std::string doing_text(const Json& status) {
  auto text =
      fmt::format("{}, for {}", status.value("doing", ""), duration_text(seconds(status, "for_s")));
  const auto work = status.value("work", Json::array());
  if (status.value("where", "") == "data" && !work.empty())
    text += fmt::format("; '{}' has worked on {} for {}", work[0].value("stage", ""),
                        work[0].value("sample", ""), duration_text(seconds(work[0], "for_s")));
  return text;
}

/// Returns the rank that has waited longest for other ranks; nullptr if none has waited `kLongS` or
/// more.
const MemberStatus* longest_wait(const std::vector<const MemberStatus*>& ranks) {
  const MemberStatus* longest = nullptr;
  for (const auto* rank : ranks) {
    const auto for_s = seconds(rank->status, "for_s");
    if (waits_for_others(*rank) && for_s >= kLongS &&
        (!longest || for_s > seconds(longest->status, "for_s")))
      longest = rank;
  }
  return longest;
}

/// Returns text on ranks that do not answer.
std::string text_of_missing(const std::vector<const MemberStatus*>& missing,
                            const std::vector<const MemberStatus*>& here) {
  std::vector<std::string> names;
  for (const auto* rank : missing) names.push_back(rank->with_host());
  const bool one = missing.size() == 1;
  auto text = fmt::format("{} {} not answer ({})", joined(names), one ? "does" : "do",
                          missing.front()->why);
  if (const auto* waits = longest_wait(here))
    return text + fmt::format("; the others wait for {} in {}, for {}", one ? "it" : "them",
                              exchange_text(waits->status),
                              duration_text(seconds(waits->status, "for_s")));
  return text + (here.empty() ? "" : "; the others are not waiting yet");
}

std::string text_of_training(const RunStatus& run) {
  std::vector<const MemberStatus*> here, missing, busy;
  double images_per_s = 0;
  for (const auto& rank : run.ranks) {
    if (!rank.answers) {
      if (rank.age_s >= 0) missing.push_back(&rank);
      continue;
    }
    here.push_back(&rank);
    if (!waits_for_others(rank)) busy.push_back(&rank);
    images_per_s += seconds(rank.status, "images_per_s");
  }
  if (!missing.empty()) return text_of_missing(missing, here);
  const auto by_stillness = [](const auto* rank) {
    return seconds(rank->status, "sign_of_life_s");
  };
  const auto* waits = longest_wait(here);
  if (waits && busy.empty())
    return fmt::format("all ranks wait in {}, for {}", exchange_text(waits->status),
                       duration_text(seconds(waits->status, "for_s")));
  if (!busy.empty()) {
    const auto* slowest = *std::ranges::max_element(busy, {}, by_stillness);
    const auto& status = slowest->status;
    if (waits)
      return fmt::format("the others wait for {}: {}", slowest->with_host(), doing_text(status));
    if (by_stillness(slowest) >= kStillS)
      return fmt::format("{} makes no progress: {}", slowest->with_host(), doing_text(status));
  }
  const auto& chief = here.front()->status;
  return fmt::format("training: step {} of {}, {:.1f} images/s", chief.value("step", 0),
                     chief.value("total_steps", 0), images_per_s);
}

std::string text_of_run(const RunStatus& run) {
  switch (run.state) {
    case RunState::starting:
      return "starting, unable to write its status, or of an older version: a process holds the "
             "lock of the run folder, but no rank has written its status";
    case RunState::training:
      return text_of_training(run);
    case RunState::silent: {
      std::vector<const MemberStatus*> missing;
      for (const auto& rank : run.ranks) missing.push_back(&rank);
      return text_of_missing(missing, {});
    }
    case RunState::broken:
      return run.standing + (run.failure.empty() ? "" : "; " + run.failure);
    default:
      return run.standing;
  }
}

}  // namespace

std::string verdict(const RunStatus& run) {
  auto text = text_of_run(run);
  for (const auto& rank : run.ranks)
    if (rank.age_s < 0 && run.state == RunState::training)
      text += fmt::format("; {} has written no status", rank.name);
  for (const auto& server : run.servers)
    if (!server.answers && !server.why.empty() && run.state == RunState::training)
      text += fmt::format("; data server {}: {}", server.name, server.why);
  return text;
}

}  // namespace millrace::cli
