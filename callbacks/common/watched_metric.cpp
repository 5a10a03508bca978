#include "millrace/callbacks/common/watched_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "millrace/base/log.h"
#include "millrace/trainer/evaluation/evaluation.h"

namespace millrace {

void WatchOptions::describe(Options& o) {
  o.add("metric", metric, "name of a metric that a callback publishes, as in metrics.jsonl");
  o.add("better", better, "direction of improvement");
}

namespace {

/// Returns true if a metric is a score of an evaluation, of the trained weights or of those of a
/// callback.
bool is_score(std::string_view metric) {
  auto names = score_names(/*federated=*/false);
  for (const auto& more : {score_names(/*federated=*/true), boundary_score_names(false),
                           boundary_score_names(true), proposal_score_names()})
    names.insert(names.end(), more.begin(), more.end());
  return std::ranges::any_of(
      names, [&](const auto& name) { return metric == name || metric.ends_with("/" + name); });
}

}  // namespace

std::optional<double> WatchedMetric::in(const Scalars& scalars) {
  const auto found = std::ranges::find(scalars, name_, &Scalars::value_type::first);
  if (found == scalars.end()) return std::nullopt;
  if (found->second != -1 || !is_score(name_)) return found->second;
  if (!std::exchange(has_warned_, true))
    log_warning("ignoring {}, which is -1: the validation split has no such objects", name_);
  return std::nullopt;
}

bool WatchedMetric::improves(double value) {
  if (!std::isfinite(value)) return false;
  if (best_ && !(higher_ ? value > *best_ + min_delta_ : value < *best_ - min_delta_)) return false;
  best_ = value;
  return true;
}

void Stall::Options::describe(millrace::Options& o, const std::string& then) {
  watch.describe(o);
  o.add("patience", patience,
        "maximum number of new values in a row without improvement; after one more, " + then,
        {.min = 0});
  o.add("min_delta", min_delta, "change that an improvement must exceed", {.min = 0});
}

void Stall::add(double value, const Moment& of) {
  if (!metric_.improves(value)) {
    bad_ += 1;
    return;
  }
  bad_ = 0;
  best_step_ = of.step;
}

std::string Stall::text() const {
  if (!metric_.best()) return fmt::format("no valid {}", metric_.name());
  return fmt::format("no {} better than {:.4g}, of step {}, in the last {}", metric_.name(),
                     *metric_.best(), best_step_, bad_);
}

nlohmann::json Stall::state() const {
  nlohmann::json state = {{"bad", bad_}, {"best_step", best_step_}};
  if (metric_.best()) state["best"] = *metric_.best();
  return state;
}

void Stall::load(const nlohmann::json& saved) {
  saved.at("bad").get_to(bad_);
  saved.at("best_step").get_to(best_step_);
  if (saved.contains("best")) metric_.set_best(saved.at("best").get<double>());
}

}  // namespace millrace
