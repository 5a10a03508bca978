#include "millrace/tools/report/run_view.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/tools/report/gallery.h"
#include "millrace/tools/report/run_facts.h"

namespace millrace::report {
namespace {

using nlohmann::ordered_json;

constexpr int kDigits = 5;  // digits of values in curves

std::string_view name_of(RecordedState state) {
  switch (state) {
    case RecordedState::training:
      return "training";
    case RecordedState::done:
      return "done";
    case RecordedState::stopped:
      return "stopped";
    case RecordedState::broken:
      return "broken";
    case RecordedState::unknown:
      break;
  }
  return "unknown";
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
