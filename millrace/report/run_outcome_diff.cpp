#include "millrace/report/run_outcome_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>

#include "millrace/base/files.h"
#include "millrace/base/sha256.h"

namespace millrace::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr auto kWeights = "model.safetensors";

/// By the steps that a value is of: the one before, itself.
std::map<std::pair<std::int64_t, std::int64_t>, double> by_window(
    const std::vector<MetricValue>& values) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> windows;
  std::int64_t before = 0;
  for (const auto& value : values) {
    windows[{before, value.step}] = value.value;
    before = value.step;
  }
  return windows;
}

bool is_loss(std::string_view name) { return name.starts_with("loss"); }

/// Steps of the checkpoints with weights.
std::set<std::int64_t> checkpoints(const fs::path& run) {
  std::set<std::int64_t> steps;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", unreadable)) {
    const std::string name = entry.path().filename();
    constexpr std::string_view kPrefix = "step-";
    std::int64_t step = 0;
    const auto* end = name.data() + name.size();
    if (name.starts_with(kPrefix) &&
        std::from_chars(name.data() + kPrefix.size(), end, step).ptr == end &&
        fs::exists(entry.path() / kWeights))
      steps.insert(step);
  }
  return steps;
}

std::string digest_of_weights(const fs::path& run, std::int64_t step) {
  const auto bytes = map_file(run / "checkpoints" / fmt::format("step-{:06}", step) / kWeights);
  return sha256({reinterpret_cast<const char*>(bytes.data.get()), bytes.size});
}

/// A number at a path of members; NaN: there is none.
double number_at(const ordered_json& object, std::initializer_list<const char*> path) {
  const auto* now = &object;
  for (const auto* key : path) {
    if (!now->is_object() || !now->contains(key)) return kNone;
    now = &(*now)[key];
  }
  return now->is_number() ? now->get<double>() : kNone;
}

double last_of(const RunFiles& run, const std::string& metric) {
  const auto& values = run.metrics.of(metric);
  return values.empty() ? kNone : values.back().value;
}

double best_of(const RunFiles& run, const std::string& metric) {
  double best = kNone;
  for (const auto& value : run.metrics.of(metric))
    if (!std::isnan(value.value) && !(value.value <= best)) best = value.value;
  return best;
}

/// Of the windows of the log, but the first, which warms up.
double images_per_s(const RunFiles& run) {
  const auto& values = run.metrics.of("time/images_per_s");
  double sum = 0;
  for (std::size_t i = values.size() > 1; i < values.size(); ++i) sum += values[i].value;
  return values.empty() ? kNone : sum / static_cast<double>(values.size() - (values.size() > 1));
}

}  // namespace

MetricsDiff metrics_diff(const MetricsLog& a, const MetricsLog& b) {
  MetricsDiff diff;
  std::set<std::int64_t> same;
  std::vector<MetricsDiff::Value> different;
  for (const auto& [name, values] : a.by_name) {
    if (name.starts_with("time/")) continue;
    const auto others = by_window(b.of(name));
    for (const auto& [window, value] : by_window(values)) {
      const auto other = others.find(window);
      if (other == others.end()) continue;
      ++diff.compared;
      const double theirs = other->second;
      if (value == theirs || (std::isnan(value) && std::isnan(theirs)))
        same.insert(window.second);
      else
        different.push_back({window.second, name, value, theirs});
    }
  }
  const auto earlier = [](const MetricsDiff::Value& one, const MetricsDiff::Value& other) {
    const auto rank = [](const auto& of) {
      return std::tuple(of.step, of.name != "loss", !is_loss(of.name));
    };
    return rank(one) < rank(other);
  };
  if (!different.empty()) diff.first = *std::ranges::min_element(different, earlier);
  for (const auto step : same)
    if (!diff.first || step < diff.first->step) diff.same_to = step;
  return diff;
}

std::optional<WeightsDiff> weights_diff(const RunFiles& a, const RunFiles& b) {
  const auto of_a = checkpoints(a.folder), of_b = checkpoints(b.folder);
  std::vector<std::int64_t> both;
  std::ranges::set_intersection(of_a, of_b, std::back_inserter(both));
  if (both.empty()) return std::nullopt;
  const auto step = both.back();
  return WeightsDiff{step, digest_of_weights(a.folder, step), digest_of_weights(b.folder, step)};
}

std::vector<Figure> figures(const RunFiles& a, const RunFiles& b) {
  std::vector<Figure> all;
  const auto add = [&](const std::string& name, const auto& of) {
    const Figure figure{name, of(a), of(b)};
    if (!std::isnan(figure.a) || !std::isnan(figure.b)) all.push_back(figure);
  };
  const auto of_record = [&](const std::string& name, std::initializer_list<const char*> path,
                             double unit = 1) {
    add(name, [&](const RunFiles& run) { return number_at(run.record, path) / unit; });
  };
  add("step", [](const RunFiles& run) { return static_cast<double>(run.metrics.last_step); });
  add("loss", [](const RunFiles& run) { return last_of(run, "loss"); });
  for (const char* score : {"bbox/AP", "segm/AP"}) {
    add(score, [&](const RunFiles& run) { return last_of(run, score); });
    add(fmt::format("best {}", score), [&](const RunFiles& run) { return best_of(run, score); });
  }
  add("images/s", images_per_s);
  of_record("time (s)", {"used", "wall_s"});
  of_record("CPU time (s)", {"used", "cpu_s"});
  std::vector<std::string> parts;
  for (const auto* run : {&a, &b})
    if (parts.empty() && !std::isnan(number_at(run->record, {"used", "wall_s"})) &&
        run->record["used"].contains("parts"))
      for (const auto& [name, part] : run->record["used"]["parts"].items()) parts.push_back(name);
  for (const auto& part : parts)
    of_record(fmt::format("  {} (s)", part), {"used", "parts", part.c_str(), "wall_s"});
  add("peak memory of a rank (MiB)", [](const RunFiles& run) {
    const double most = peak_memory_mib(run);
    return most > 0 ? most : kNone;
  });
  of_record("energy of processors (kWh)", {"used", "energy_j"}, 3.6e6);
  of_record("price", {"used", "price"});
  return all;
}

}  // namespace millrace::report
