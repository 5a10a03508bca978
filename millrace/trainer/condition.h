// A comparison that says whether a callback is triggered.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace {

class TrainState;

/// "epoch >= 8", "bbox/AP > 0.3": a figure of the training, one of < <= > >= == !=, a number.
/// Figures are those of `step_figures` and the latest value of whatever callbacks publish: at a
/// step boundary that of an earlier one, so that no order of callbacks matters.
class Condition {
 public:
  /// Throws ConfigError quoting the text; `where` says whose it is.
  explicit Condition(std::string_view text, const std::string& where = "only_if");

  /// False where the figure has no value yet.
  bool holds(const TrainState& state) const;

  /// The metric that it looks at.
  const std::string& name() const { return name_; }

  /// The metrics that every training has: those of the last step and of the position after it.
  static const std::vector<std::string>& step_figures();

 private:
  std::string name_, compare_;
  double number_ = 0;
};

}  // namespace millrace
