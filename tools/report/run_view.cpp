#include "millrace/tools/report/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/text.h"
#include "millrace/tools/report/gallery.h"

namespace millrace::report {
namespace {

using nlohmann::ordered_json;

constexpr int kDigits = 5;  // digits of values in curves

std::string_view name_of(RecordedState state) {
  constexpr std::string_view kNames[] = {"training", "done", "stopped", "broken", "unknown"};
  return kNames[static_cast<std::size_t>(state)];
}

/// Returns the indices of the minimum, the maximum and one value that is not finite, for each part
/// of a long series; all indices of a short one.
std::vector<std::size_t> thinned(const std::vector<MetricValue>& values, std::size_t most) {
  std::vector<std::size_t> all;
  const std::size_t parts =
      values.size() <= most ? values.size() : std::max<std::size_t>(1, most / 2);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * values.size() / parts;
    const std::size_t end = (part + 1) * values.size() / parts;
    std::size_t low = begin, high = begin;
    std::optional<std::size_t> broken;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i].value)) {
        broken = i;
        continue;
      }
      if (!(values[low].value <= values[i].value)) low = i;  // also if values[low] is not finite
      if (!(values[high].value >= values[i].value)) high = i;
    }
    std::vector<std::size_t> kept{low, high};
    if (broken) kept.push_back(*broken);
    std::ranges::sort(kept);
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    all.insert(all.end(), kept.begin(), kept.end());
  }
  return all;
}

/// Returns pairs of step and value; null if the value is not finite.
ordered_json metrics_json(const MetricsLog& metrics, std::size_t most_points) {
  auto json = ordered_json::object();
  for (const auto& [name, values] : metrics.by_name) {
    auto& points = json[name] = ordered_json::array();
    for (const std::size_t i : thinned(values, most_points))
      points.push_back(ordered_json::array({values[i].step, rounded(values[i].value, kDigits)}));
  }
  return json;
}

/// Returns the price of the run when the scores of a step became known; null if no rate was set.
ordered_json price_at(const RunFiles& run, std::int64_t step) {
  for (const auto& evaluation : member(run.record, "evaluations"))
    if (const auto& price = member(evaluation, "price");
        price.is_number() && member(evaluation, "step") == step)
      return price;
  return nullptr;
}

bool is_ap(std::string_view name) { return name.ends_with("bbox/AP") || name.ends_with("segm/AP"); }

/// Returns the AP of each evaluation, with the time and price until then.
ordered_json evaluations_json(const RunFiles& run) {
  std::map<std::int64_t, std::pair<MetricValue, ordered_json>> by_step;
  for (const auto& [name, values] : run.metrics.by_name)
    if (is_ap(name))
      for (const MetricValue& one : values) {
        auto& [at, named] = by_step[one.step];
        at = one;
        named[name] = one.value;
      }
  auto all = ordered_json::array();
  for (const auto& [step, evaluation] : by_step)
    all.push_back({{"step", step},
                   {"epoch", evaluation.first.epoch},
                   {"seconds", trained_seconds(run, evaluation.first.time)},
                   {"price", price_at(run, step)},
                   {"values", evaluation.second}});
  return all;
}

ordered_json class_scores_json(const RunFiles& run) {
  auto json = ordered_json::object();
  for (const auto& [iou, all] : run.class_scores)
    for (const ClassScores& one : all) {
      auto ap = ordered_json::object();
      for (const auto& [id, value] : one.ap) ap[std::to_string(id)] = rounded(value, kDigits);
      json[iou].push_back({{"step", one.step}, {"ap", std::move(ap)}});
    }
  return json;
}

/// Returns names and seconds of the parts of the training steps, summed over the logging windows.
ordered_json time_parts(const RunFiles& run) {
  std::map<std::int64_t, double> steps;  // number of steps in the window that ends at a step
  std::int64_t before = 0;
  for (const MetricValue& one : run.metrics.of("time/step_s")) {
    steps[one.step] += static_cast<double>(one.step - before);
    before = one.step;
  }
  const auto total = [&](const std::string& name) {
    double seconds = 0;
    for (const MetricValue& one : run.metrics.of(name))
      if (const auto window = steps.find(one.step); window != steps.end() && one.value > 0)
        seconds += one.value * window->second;
    return seconds;
  };
  auto parts = ordered_json::array();
  const auto add = [&](const std::string& name, double seconds) {
    if (seconds > 0) parts.push_back(ordered_json::array({name, rounded(seconds, kDigits)}));
  };
  const double sync = total("time/sync_s");
  add("waiting for data", total("time/data_wait_s"));
  add("steps", total("time/step_s") - sync);
  add("waiting for other ranks", sync);
  double named = 0;
  for (const auto& [name, values] : run.metrics.by_name) {
    constexpr std::string_view kPrefix = "time/callbacks/";
    if (!name.starts_with(kPrefix)) continue;
    const double seconds = total(name);
    add("callback " + name.substr(kPrefix.size(), name.size() - kPrefix.size() - 2), seconds);
    named += seconds;
  }
  add("other callbacks", total("time/callbacks_s") - named);
  return parts;
}

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

/// Returns the training time multiplied by the number of devices, in hours; 0 if not recorded.
double device_hours(const RunFiles& run) {
  const auto& ranks = member(run.last_start(), "ranks");
  if (!ranks.is_array()) return 0;
  return trained_seconds(run, run.metrics.last_time) / 3600 * static_cast<double>(ranks.size());
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

/// Returns programs, machines, the command of the last start, and the duration and devices of the
/// training: [name, value].
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

/// Returns all values of a run's configuration, sorted by key: [key, value as TOML, from]. `from`
/// is a file and line, "--set" or "default"; empty if not recorded.
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

}  // namespace

ordered_json run_view(const RunFiles& run, std::size_t most_points) {
  return {{"name", run.name},
          {"standing", name_of(run.state)},
          {"standing_text", run.state_text},
          {"log_end", run.log_end},
          {"remarks", run.remarks},
          {"limited", run.limited},
          {"step", run.metrics.last_step},
          {"seconds", trained_seconds(run, run.metrics.last_time)},
          {"device_hours", device_hours(run)},
          {"peak_memory_mib", peak_memory_mib(run)},
          {"metrics", metrics_json(run.metrics, most_points)},
          {"evaluations", evaluations_json(run)},
          {"class_scores", class_scores_json(run)},
          {"time_parts", time_parts(run)},
          {"config", config_json(run)},
          {"facts", facts_json(run)}};
}

}  // namespace millrace::report
