#include "millrace/report/run_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "millrace/base/text.h"
#include "millrace/page/html.h"

namespace millrace::report {
namespace {

using nlohmann::ordered_json;
using page::Column;
using page::escaped;

std::string code(const std::string& text) {
  return text.empty() ? "" : fmt::format("<code>{}</code>", escaped(text));
}

/// Values as TOML, by key.
std::map<std::string, std::string> values_of(const RunFiles& run) {
  std::map<std::string, std::string> values;
  if (run.config.is_table())
    for (const auto& [key, value] : leaves(run.config)) values[key] = value_text(*value);
  return values;
}

std::string differences(std::span<const RunFiles> runs) {
  std::vector<std::map<std::string, std::string>> values;
  std::set<std::string> keys;
  for (const RunFiles& run : runs) {
    values.push_back(values_of(run));
    for (const auto& [key, value] : values.back()) keys.insert(key);
  }
  std::vector<Column> columns{{"key"}};
  for (const RunFiles& run : runs) columns.push_back({escaped(run.name), true});
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : keys) {
    std::vector<std::string> row{escaped(key)};
    std::set<std::string> different;
    for (const auto& one : values) {
      const auto at = one.find(key);
      different.insert(at == one.end() ? "" : at->second);
      row.push_back(at == one.end() ? "<span class=\"soft\">not there</span>" : code(at->second));
    }
    if (different.size() > 1) rows.push_back(std::move(row));
  }
  if (rows.empty()) return "<p>The configurations are the same.</p>\n";
  return fmt::format("<p>Values that differ: {}.</p>\n", rows.size()) +
         page::table(columns, rows, "wrapped");
}

/// Values with where they came from: those that were set, then the defaults.
std::string values_table(const RunFiles& run) {
  const auto origin = [&](const std::string& key) {
    const auto at = run.origins.find(key);
    return at == run.origins.end() ? std::string() : at->second;
  };
  std::vector<std::vector<std::string>> given, others;
  for (const auto& [key, value] : values_of(run)) {
    const std::string from = origin(key);
    (from.empty() || from == "default" ? others : given)
        .push_back({escaped(key), code(value), escaped(from)});
  }
  const std::vector<Column> columns{{"key"}, {"value", true}, {"from", true}};
  std::string out;
  if (!given.empty()) out += page::table(columns, given, "wrapped");
  if (!others.empty())
    out += fmt::format("<details><summary>{} {}</summary>\n", others.size(),
                       run.origins.empty() ? "values; this run did not record where they came from"
                                           : "values of default") +
           page::table(columns, others, "wrapped") + "</details>\n";
  return out;
}

std::string joined_text(const ordered_json& array) {
  std::vector<std::string> words;
  if (array.is_array())
    for (const auto& one : array)
      if (one.is_string()) words.push_back(one.get<std::string>());
  return joined(words, " ");
}

ordered_json member(const ordered_json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object[key] : ordered_json();
}

/// "4 x cuda (NVIDIA H100)"
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

/// What the last start of a run says, in rows.
std::vector<std::pair<std::string, std::string>> facts_of(const RunFiles& run) {
  std::vector<std::pair<std::string, std::string>> facts;
  const ordered_json& start = run.last_start();
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) facts.emplace_back(name, value);
  };
  add("folder", run.folder.string());
  add("started", text_of(start, "time"));
  if (const auto starts = member(run.record, "starts"); starts.is_array() && starts.size() > 1)
    add("starts", fmt::format("{}; what follows is of the last one", starts.size()));
  add("command", joined_text(member(start, "command")));
  add("in", text_of(start, "directory"));
  add("cost", cost_text(run));
  add("program", text_of(start, "program"));
  const auto versions = member(start, "versions");
  for (const auto& [name, value] : versions.items())
    if (value.is_string()) add(name, value.get<std::string>());
  const auto repository = member(start, "repository");
  add("repository", text_of(repository, "folder"));
  add("revision", text_of(repository, "revision"));
  if (const auto diff = text_of(repository, "diff"); !diff.empty())
    add("changes", diff + " in the run's folder");
  const auto environment = member(start, "environment");
  for (const auto& [name, value] : environment.items())
    if (value.is_string()) add(name, value.get<std::string>());
  const auto ranks = member(start, "ranks");
  add("devices", devices_text(ranks));
  if (ranks.is_array() && !ranks.empty()) {
    std::set<std::string> hosts, instructions;
    for (const auto& rank : ranks) {
      hosts.insert(text_of(rank, "host"));
      instructions.insert(text_of(rank, "instructions"));
    }
    add("hosts", joined(std::vector<std::string>(hosts.begin(), hosts.end())));
    add("instructions", joined(std::vector<std::string>(instructions.begin(), instructions.end())));
    if (const auto threads = member(ranks[0], "maths_threads"); threads.is_number())
      add("threads of maths", threads.dump());
  }
  return facts;
}

}  // namespace

double device_hours(const RunFiles& run) {
  const auto ranks = member(run.last_start(), "ranks");
  if (!ranks.is_array()) return 0;
  return trained_seconds(run, run.metrics.last_time) / 3600 * static_cast<double>(ranks.size());
}

std::string cost_text(const RunFiles& run) {
  const double hours = device_hours(run);
  if (!(hours > 0)) return "";
  auto text = fmt::format("{} on {}, {:.2f} device-hours",
                          duration_text(trained_seconds(run, run.metrics.last_time)),
                          devices_text(member(run.last_start(), "ranks")), hours);
  if (const auto price = member(member(run.record, "used"), "price"); price.is_number())
    text += fmt::format(", price {:.2f}", price.get<double>());
  return text;
}

std::string standing_text(std::span<const RunFiles> runs) {
  std::string out;
  for (const RunFiles& run : runs) {
    const bool bad = run.standing == Standing::broken;
    out += fmt::format("<p class=\"verdict{}\"><b>{}</b>: {}.</p>\n", bad ? " warning" : "",
                       escaped(run.name), escaped(run.standing_text));
    if (!run.log_end.empty())
      out += fmt::format(
          "<details open><summary>The end of its log.txt</summary><pre "
          "tabindex=\"0\">{}</pre></details>\n",
          escaped(run.log_end));
    if (run.remarks.empty()) continue;
    out += "<ul>\n";
    for (const std::string& remark : run.remarks)
      out += fmt::format("<li>{}.</li>\n", escaped(remark));
    out += "</ul>\n";
  }
  return out;
}

page::Section configuration_section(std::span<const RunFiles> runs) {
  std::string out;
  if (runs.size() > 1) out += differences(runs);
  for (const RunFiles& run : runs) {
    const std::string values = values_table(run);
    if (values.empty()) continue;
    out += runs.size() > 1 ? fmt::format("<details><summary>{}</summary>\n{}</details>\n",
                                         escaped(run.name), values)
                           : values;
  }
  if (out.empty()) out = "<p>No configuration in the run's folder.</p>\n";
  return {"configuration", "Configuration", std::move(out)};
}

page::Section environment_section(std::span<const RunFiles> runs) {
  std::vector<std::map<std::string, std::string>> facts;
  std::vector<std::string> order;
  for (const RunFiles& run : runs) {
    auto& mine = facts.emplace_back();
    for (const auto& [name, value] : facts_of(run)) {
      mine[name] = value;
      if (!std::ranges::count(order, name)) order.push_back(name);
    }
  }
  std::vector<Column> columns{{""}};
  for (const RunFiles& run : runs) columns.push_back({escaped(run.name), true});
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : order) {
    rows.push_back({escaped(name)});
    for (const auto& one : facts) {
      const auto at = one.find(name);
      rows.back().push_back(at == one.end() ? "" : code(at->second));
    }
  }
  return {"environment", "Environment", page::table(columns, rows, "wrapped")};
}

}  // namespace millrace::report
