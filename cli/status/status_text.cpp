// The text of `trainer status`: tables, and the rank that the others wait for.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

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

constexpr std::size_t kMostHost = 10, kMostServer = 30;
constexpr std::string_view kIndent = "      ";

std::string cut(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 1) + "~";
}

/// Returns the width of the longest name or the title, up to `most`.
std::size_t width(const std::vector<MemberStatus>& members, std::string MemberStatus::*name,
                  std::string_view title, std::size_t most) {
  auto widest = title.size();
  for (const auto& member : members) widest = std::max(widest, (member.*name).size());
  return std::min(widest, most);
}

std::string bytes_text(const Json& status, const char* key) {
  return byte_text(status.value(key, 0.));
}

/// Returns text for a rank or server that does not answer.
std::string absence_text(const MemberStatus& member) {
  const auto when =
      member.age_s < 0 ? "" : fmt::format("; last status {} ago", duration_text(member.age_s));
  return fmt::format("{}{}{}\n", kIndent, member.why, when);
}

std::string work_text(const Json& work) {
  std::string text;
  for (const auto& one : work)
    if (const auto for_s = one.value("for_s", 0.); for_s >= kLongS)
      text += fmt::format("{}'{}' has worked on {} for {}\n", kIndent, one.value("stage", ""),
                          one.value("sample", ""), duration_text(for_s));
  return text;
}

/// Returns "exchange 12.3 s" or "evaluate 1:02".
std::string where_text(const Json& status) {
  constexpr std::string_view kCallback = "callback ";
  auto where = status.value("where", "");
  if (where.starts_with(kCallback)) where.erase(0, kCallback.size());
  return fmt::format("{} {}", where, duration_text(status.value("for_s", 0.)));
}

std::string details_of_rank(const Json& status) {
  if (status.value("for_s", 0.) < kLongS) return {};
  auto text = fmt::format("{}{}", kIndent, status.value("doing", ""));
  if (const auto exchange = status.value("exchange", Json()); exchange.is_object())
    text +=
        fmt::format("; waits in '{}' of {}", exchange.value("what", ""), exchange.value("of", ""));
  if (const auto life = status.value("sign_of_life_s", 0.); life >= kLongS)
    text += fmt::format("; last progress {} ago", duration_text(life));
  return text + "\n" +
         (status.value("where", "") == "data" ? work_text(status.value("work", Json::array()))
                                              : "");
}

std::string table_of_ranks(const std::vector<MemberStatus>& ranks) {
  const auto host = width(ranks, &MemberStatus::host, "host", kMostHost);
  auto text = fmt::format("{:>4}  {:<{}}  {:>6}  {:>6}  {:>8}  {:>8}  {:>8}  {}\n", "rank", "host",
                          host, "step", "img/s", "memory", "received", "sent", "in");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto& status = ranks[i].status;
    text += fmt::format("{:>4}  {:<{}}", i, cut(ranks[i].host, kMostHost), host);
    if (status.is_object())
      text += fmt::format("  {:>6}  {:>6.1f}  {:>8}  {:>8}  {:>8}  {}", status.value("step", 0),
                          status.value("images_per_s", 0.), bytes_text(status, "memory_bytes"),
                          bytes_text(status, "received_bytes"), bytes_text(status, "sent_bytes"),
                          where_text(status));
    text += "\n";
    if (ranks[i].answers)
      text += details_of_rank(status);
    else if (!ranks[i].why.empty())
      text += absence_text(ranks[i]);
  }
  return text;
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

std::string table_of_servers(const std::vector<MemberStatus>& servers) {
  const auto name = width(servers, &MemberStatus::name, "data server", kMostServer);
  auto text = fmt::format("{:<{}}  {:>9}  {:>5}  {:>6}  {:>8}  {:>8}\n", "data server", name,
                          "consumers", "asked", "img/s", "memory", "sent");
  for (const auto& server : servers) {
    const auto& status = server.status;
    text += fmt::format("{:<{}}", cut(server.name, kMostServer), name);
    if (status.is_object())
      text += fmt::format("  {:>9}  {:>5}  {:>6.1f}  {:>8}  {:>8}",
                          status.value("consumers", Json::array()).size(), status.value("asked", 0),
                          status.value("images_per_s", 0.), bytes_text(status, "memory_bytes"),
                          bytes_text(status, "sent_bytes"));
    text += "\n";
    if (server.answers)
      for (const auto& consumer : status.value("consumers", Json::array()))
        text += work_text(consumer.value("work", Json::array()));
    else if (!server.why.empty())
      text += absence_text(server);
  }
  return text;
}

std::string to_text(const RunStatus& run) {
  auto text = fmt::format("{}: {}\n", run.run.string(), name_of(run.state));
  if (!run.ranks.empty()) text += "\n" + table_of_ranks(run.ranks);
  if (!run.servers.empty()) text += "\n" + table_of_servers(run.servers);
  if (!run.log_end.empty()) text += "\nEnd of log.txt:\n" + run.log_end;
  if (!text.ends_with('\n')) text += '\n';
  text += "\n" + verdict(run) + "\n";
  for (const auto& other : run.also_training)
    text += fmt::format("also training: {} (trainer status {})\n", other.filename().string(),
                        other.string());
  return text;
}

}  // namespace millrace::cli
