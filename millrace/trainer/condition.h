// A comparison that decides whether a callback is triggered.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace {

class TrainState;

/// "epoch >= 8", "bbox/AP > 0.3": a metric, one of < <= > >= == !=, a number. Metrics are those of
/// `step_figures` and the latest that callbacks have published at earlier step boundaries.
class Condition {
 public:
  /// Throws ConfigError; `where` says whose text it is.
  explicit Condition(std::string_view text, const std::string& where = "only_if");

  /// False if the metric has no value yet.
  bool holds(const TrainState& state) const;

  /// The metric.
  const std::string& name() const { return name_; }

  /// The metrics of every training.
  static const std::vector<std::string>& step_figures();

 private:
  std::string name_, compare_;
  double number_ = 0;
};

}  // namespace millrace
