#include "tests/bench/scaling/scaled_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/errors.h"

namespace millrace::scaling {
namespace {

constexpr double kBucketBytes = 25e6;

/// Returns the values of a metric after the warm-up; empty = none.
std::vector<double> values_of(const report::RunFiles& run, const char* name, std::int64_t warm_up) {
  std::vector<double> values;
  for (const auto& one : run.metrics.of(name))
    if (one.step > warm_up && std::isfinite(one.value)) values.push_back(one.value);
  return values;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double part(const report::RunFiles& run, const char* name, const char* time) {
  return run.record.at("used").at("parts").at(name).at(time).get<double>();
}

}  // namespace

ScaledRun measured(const report::RunFiles& run, int ranks, std::int64_t images_per_step,
                   std::int64_t warm_up) try {
  auto step_s = values_of(run, "time/images_per_s", warm_up);
  if (step_s.empty())
    throw Error(
        fmt::format("{} has no steps after {} warm-up steps", run.folder.string(), warm_up));
  for (auto& value : step_s) value = static_cast<double>(images_per_step) / value;
  ScaledRun result{.ranks = ranks, .images_per_step = images_per_step, .step_s = mean(step_s)};
  const auto sync_s = values_of(run, "time/sync_s", warm_up);
  auto compute_s = values_of(run, "time/step_s", warm_up);
  for (std::size_t i = 0; i < std::min(sync_s.size(), compute_s.size()); ++i)
    compute_s[i] -= sync_s[i];
  result.compute_s = mean(compute_s);
  result.jitter_s = deviation(compute_s);
  const double forward = part(run, "forward", "wall_s"), backward = part(run, "backward", "wall_s");
  result.backward = backward / std::max(1e-9, forward + backward);
  result.data_share = mean(values_of(run, "time/data_wait_share", warm_up));
  const double steps = static_cast<double>(run.metrics.last_step);
  result.sync_share = part(run, "sync", "wall_s") / (steps * result.step_s);
  const double all_cpu_s = run.record.at("used").at("cpu_s").get<double>();
  result.cpu_s = (all_cpu_s - ranks * part(run, "start", "cpu_s")) / steps;
  return result;
} catch (const nlohmann::json::exception& problem) {
  throw Error(fmt::format("{}: step times not found in the record ({})", run.folder.string(),
                          problem.what()));
}

double efficiency(const ScaledRun& run, const ScaledRun& first) {
  return run.images_per_s() / run.ranks / (first.images_per_s() / first.ranks);
}

double predicted_step_s(const ScaledRun& first, int ranks, std::int64_t images_per_step,
                        const ScalingParts& parts) {
  const auto turns = [&](int of) { return std::max(1.0, of * parts.threads / parts.cores); };
  const double images_before = static_cast<double>(first.images_per_step) / first.ranks;
  Compute compute{.backward = first.backward};
  compute.image_s = first.compute_s / images_before / turns(first.ranks) * turns(ranks);
  compute.spread = first.jitter_s / first.compute_s * std::sqrt(images_before);
  std::vector<Gradient> buckets;
  const auto count = std::max(1.0, std::ceil(parts.gradient_bytes / kBucketBytes));
  for (double i = 1; i <= count; ++i)  // they become ready evenly over the backward pass
    buckets.push_back({parts.gradient_bytes / count, i / count});
  const auto step = step_time(compute, static_cast<double>(images_per_step) / ranks, buckets, ranks,
                              parts.network);
  const double other_s = first.step_s * (1 - first.sync_share) - first.compute_s;
  return step.total_s() + std::max(0.0, other_s);
}

}  // namespace millrace::scaling
