#include "millrace/tools/report/metrics_log.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace millrace::report {
namespace {

double number(const nlohmann::json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}

/// Returns false for an invalid line.
bool add_line(std::string_view text, MetricsLog& log) {
  const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer())
    return false;
  MetricValue at{line["step"].get<std::int64_t>(), number(line, "epoch"), number(line, "time"), 0};
  for (const auto& [name, value] : line.items()) {
    if (name == "step" || name == "epoch" || name == "time") continue;
    if (!value.is_number() && !value.is_null()) continue;
    at.value = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    log.by_name[name].push_back(at);
  }
  log.last_step = std::max(log.last_step, at.step);
  log.last_epoch = std::max(log.last_epoch, at.epoch);
  if (at.time > 0 && (log.first_time == 0 || at.time < log.first_time)) log.first_time = at.time;
  log.last_time = std::max(log.last_time, at.time);
  return true;
}

}  // namespace

const std::vector<MetricValue>& MetricsLog::of(const std::string& name) const {
  static const std::vector<MetricValue> none;
  const auto at = by_name.find(name);
  return at == by_name.end() ? none : at->second;
}

MetricsLog read_metrics(std::string_view text) {
  MetricsLog log;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const bool is_whole = end != std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(is_whole ? end + 1 : text.size());
    if (line.find_first_not_of(" \r") == std::string_view::npos || add_line(line, log)) continue;
    if (is_whole)
      log.broken_lines.push_back(number);
    else
      log.is_cut = true;
  }
  // Scores of a background evaluation are logged after later steps.
  for (auto& [name, values] : log.by_name) std::ranges::stable_sort(values, {}, &MetricValue::step);
  return log;
}

}  // namespace millrace::report
