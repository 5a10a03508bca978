// The scores of a run so far: the last ones, and when AP was best.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "millrace/base/options.h"
#include "millrace/trainer/evaluation.h"

namespace millrace {

class ScoreHistory {
 public:
  void add(const Moment& of, const DetectorScores& scores);

  /// The last ones by name; empty where there are none.
  const Scalars& last() const { return last_; }

  /// How the last scores reach all of `targets`, in words: "bbox/AP 0.3781 of 0.377, ..."; nothing
  /// where they do not or where one of the two is empty. Throws Error naming a target that is no
  /// score of this detector.
  std::optional<std::string> reach(const Options::Table& targets) const;

  /// The tables of the last scores, and the best AP, in words. `whose` they are: " of
  /// average_weights"; nothing for the trained weights.
  std::string last_text(const std::string& whose) const;
  std::string best_text(const std::string& whose) const;

  /// What load takes; null where there are no scores.
  nlohmann::json state() const;
  void load(const nlohmann::json& state);

 private:
  Scalars last_;
  std::string tables_;  // of the last scores
  std::int64_t step_ = 0;
  double best_ = 0;  // AP of masks where there are any, else of boxes
  std::int64_t best_step_ = -1;
  std::string best_kind_;
};

}  // namespace millrace
