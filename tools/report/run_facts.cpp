#include "millrace/tools/report/run_facts.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/text.h"

namespace millrace::report {
namespace {

using nlohmann::ordered_json;

std::string joined_text(const ordered_json& array) {
  std::vector<std::string> words;
  if (array.is_array())
    for (const auto& one : array)
      if (one.is_string()) words.push_back(one.get<std::string>());
  return joined(words, " ");
}

/// Returns a text such as "4 x cuda (NVIDIA H100)".
std::string devices_text(const ordered_json& ranks) {
  std::map<std::string, int> kinds;
  if (ranks.is_array())
    for (const auto& rank : ranks) {
      const std::string device = text_of(rank, "device"), name = text_of(rank, "device_name");
      const std::string what = name.empty() ? text_of(rank, "processor") : name;
      ++kinds[device.substr(0, device.find(':')) + (what.empty() ? "" : " (" + what + ")")];
    }
  std::vector<std::string> words;
  for (const auto& [kind, count] : kinds) words.push_back(fmt::format("{} x {}", count, kind));
  return joined(words);
}

/// Returns a text such as "2:03 on 4 x cuda (NVIDIA H100), 0.14 device-hours, price 0.45"; empty if
/// not recorded.
std::string cost_text(const RunFiles& run) {
  const double hours = device_hours(run);
  if (!(hours > 0)) return "";
  auto text = fmt::format("{} on {}, {:.2f} device-hours",
                          duration_text(trained_seconds(run, run.metrics.last_time)),
                          devices_text(member(run.last_start(), "ranks")), hours);
  if (const auto& price = member(member(run.record, "used"), "price"); price.is_number())
    text += fmt::format(", price {:.2f}", price.get<double>());
  return text;
}

}  // namespace

double device_hours(const RunFiles& run) {
  const auto& ranks = member(run.last_start(), "ranks");
  if (!ranks.is_array()) return 0;
  return trained_seconds(run, run.metrics.last_time) / 3600 * static_cast<double>(ranks.size());
}

ordered_json facts_json(const RunFiles& run) {
  auto facts = ordered_json::array();
  const ordered_json& start = run.last_start();
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) facts.push_back(ordered_json::array({name, value}));
  };
  add("folder", run.folder.string());
  add("started", text_of(start, "time"));
  if (const auto& starts = member(run.record, "starts"); starts.is_array() && starts.size() > 1)
    add("starts", fmt::format("{}; the rows below are of the last one", starts.size()));
  add("command", joined_text(member(start, "command")));
  add("in", text_of(start, "directory"));
  add("cost", cost_text(run));
  add("program", text_of(start, "program"));
  const auto& versions = member(start, "versions");
  for (const auto& [name, value] : versions.items())
    if (value.is_string()) add(name, value.get<std::string>());
  const auto& repository = member(start, "repository");
  add("repository", text_of(repository, "folder"));
  add("revision", text_of(repository, "revision"));
  if (const auto diff = text_of(repository, "diff"); !diff.empty())
    add("changes", diff + " in the run's folder");
  const auto& environment = member(start, "environment");
  for (const auto& [name, value] : environment.items())
    if (value.is_string()) add(name, value.get<std::string>());
  const auto& ranks = member(start, "ranks");
  add("devices", devices_text(ranks));
  if (ranks.is_array() && !ranks.empty()) {
    std::set<std::string> hosts, instructions;
    for (const auto& rank : ranks) {
      hosts.insert(text_of(rank, "host"));
      instructions.insert(text_of(rank, "instructions"));
    }
    add("hosts", joined(std::vector<std::string>(hosts.begin(), hosts.end())));
    add("instructions", joined(std::vector<std::string>(instructions.begin(), instructions.end())));
    if (const auto& threads = member(ranks[0], "maths_threads"); threads.is_number())
      add("math threads", threads.dump());
  }
  return facts;
}

ordered_json config_json(const RunFiles& run) {
  std::map<std::string, ordered_json> rows;
  if (run.config.is_table())
    for (const auto& [key, value] : leaves(run.config)) {
      const auto origin = run.origins.find(key);
      rows[key] = ordered_json::array(
          {key, value_text(*value), origin == run.origins.end() ? "" : origin->second});
    }
  auto all = ordered_json::array();
  for (auto& [key, row] : rows) all.push_back(std::move(row));
  return all;
}

}  // namespace millrace::report
