// The scores of a run so far: the last ones and the best AP.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"
#include "millrace/base/text.h"
#include "millrace/trainer/evaluation/evaluation.h"

namespace millrace {

class ScoreHistory {
 public:
  void add(const Moment& of, const DetectorScores& scores) {
    last_ = named_scores(scores);
    tables_ = score_tables(scores);
    step_ = of.step;
    const double ap = scores.masks ? scores.masks->stats[0] : scores.boxes.stats[0];
    if (best_step_ >= 0 && !(ap > best_)) return;
    best_ = ap;
    best_step_ = of.step;
    best_kind_ = scores.masks ? "mask" : "box";
  }

  /// Last scores by name; empty before the first evaluation.
  const Scalars& last() const { return last_; }

  /// Returns how the last scores reach all of `targets`: "bbox/AP 0.3781 of 0.377, ..."; nullopt if
  /// they do not, or if either is empty. Throws Error naming a target that the detector does not
  /// give.
  std::optional<std::string> reach(const Options::Table& targets) const {
    if (targets.empty() || last_.empty()) return std::nullopt;
    std::vector<std::string> reached;
    for (const auto& [name, target] : targets) {
      const auto score = std::ranges::find(last_, name, &Scalars::value_type::first);
      if (score == last_.end())
        throw Error(
            fmt::format("callbacks.evaluate.targets: the detector does not predict {}", name));
      if (!(score->second >= target)) return std::nullopt;
      reached.push_back(fmt::format("{} {:.4f} of {}", name, score->second, target));
    }
    return joined(reached);
  }

  /// Format the last scores, short and in full, and the best AP. `whose`: " of average_weights", or
  /// "" for the trained weights.
  std::string last_text(const std::string& whose) const {
    return fmt::format("evaluation{} after step {}\n{}", whose, step_, score_summary(last_));
  }
  const std::string& last_tables() const { return tables_; }
  std::string best_text(const std::string& whose) const {
    return fmt::format("best {} AP{} {:.4f}, after step {}", best_kind_, whose, best_, best_step_);
  }

  /// State for checkpoints; null if there are no scores.
  nlohmann::json state() const {
    if (last_.empty()) return {};
    return {{"last", last_}, {"tables", tables_},       {"step", step_},
            {"best", best_}, {"best_step", best_step_}, {"best_kind", best_kind_}};
  }
  void load(const nlohmann::json& state) {
    if (state.is_null()) return;
    state.at("last").get_to(last_);
    state.at("tables").get_to(tables_);
    state.at("step").get_to(step_);
    state.at("best").get_to(best_);
    state.at("best_step").get_to(best_step_);
    state.at("best_kind").get_to(best_kind_);
  }

 private:
  Scalars last_;
  std::string tables_;  // tables of the last scores
  std::int64_t step_ = 0;
  double best_ = 0;  // best AP; of masks if there are any, else of boxes
  std::int64_t best_step_ = -1;
  std::string best_kind_;
};

}  // namespace millrace
