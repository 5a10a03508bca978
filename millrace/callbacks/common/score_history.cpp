#include "millrace/callbacks/common/score_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {

void ScoreHistory::add(const Moment& of, const DetectorScores& scores) {
  last_ = named_scores(scores);
  tables_ = score_tables(scores);
  step_ = of.step;
  const double ap = scores.masks ? scores.masks->stats[0] : scores.boxes.stats[0];
  if (best_step_ >= 0 && !(ap > best_)) return;
  best_ = ap;
  best_step_ = of.step;
  best_kind_ = scores.masks ? "mask" : "box";
}

std::optional<std::string> ScoreHistory::reach(const Options::Table& targets) const {
  if (targets.empty() || last_.empty()) return std::nullopt;
  std::vector<std::string> reached;
  for (const auto& [name, target] : targets) {
    const auto score = std::ranges::find(last_, name, &Scalars::value_type::first);
    if (score == last_.end())
      throw Error(fmt::format("callbacks.evaluate.targets: the detector gives no {}", name));
    if (!(score->second >= target)) return std::nullopt;
    reached.push_back(fmt::format("{} {:.4f} of {}", name, score->second, target));
  }
  return joined(reached);
}

std::string ScoreHistory::last_text(const std::string& whose) const {
  return fmt::format("evaluation{} after step {}\n{}", whose, step_, tables_);
}

std::string ScoreHistory::best_text(const std::string& whose) const {
  return fmt::format("best {} AP{} {:.4f}, after step {}", best_kind_, whose, best_, best_step_);
}

nlohmann::json ScoreHistory::state() const {
  if (last_.empty()) return {};
  return {{"last", last_}, {"tables", tables_},       {"step", step_},
          {"best", best_}, {"best_step", best_step_}, {"best_kind", best_kind_}};
}

void ScoreHistory::load(const nlohmann::json& state) {
  if (state.is_null()) return;
  state.at("last").get_to(last_);
  state.at("tables").get_to(tables_);
  state.at("step").get_to(step_);
  state.at("best").get_to(best_);
  state.at("best_step").get_to(best_step_);
  state.at("best_kind").get_to(best_kind_);
}

}  // namespace millrace
