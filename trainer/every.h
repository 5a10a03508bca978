// When a callback is triggered.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/config.h"

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

/// "500 steps", "1 epoch", "0.5 epochs", "30 seconds", "10 minutes", "2 hours".
struct Period {
  enum class Unit { steps, epochs, seconds };
  double length = 1;
  Unit unit = Unit::epochs;
};

/// Throws ConfigError; `where` says whose text it is.
Period parse_period(std::string_view text, const std::string& where = "every");

/// Throws ConfigError with the place of `key` unless `text` is a period or empty.
void check_period(const Config& table, std::string_view key, std::string_view text);

/// After which steps a period has passed. Steps and epochs count from the beginning of the
/// training, so that a resumed one triggers at the same steps; seconds count on a steady clock,
/// from when this was made or last due.
class Every {
 public:
  explicit Every(Period period) : period_(period) {}

  /// Ask once after each step. True after the last step too.
  bool is_due(const TrainState& state);

  /// Whether a clock decides.
  bool is_timed() const { return period_.unit == Period::Unit::seconds; }

 private:
  Period period_;
  Clock::time_point last_ = Clock::now();
};

/// A period, perhaps with a condition; perhaps also before the first step.
class When {
 public:
  When(Every every, std::optional<Condition> only_if = std::nullopt, bool at_start = false)
      : every_(every), only_if_(std::move(only_if)), at_start_(at_start) {}

  /// Ask once after each step. A period that ends while the condition does not hold is over, too.
  bool is_due(const TrainState& state) { return every_.is_due(state) && holds(state); }

  /// Ask once, before the first step.
  bool is_due_at_start(const TrainState& state) const { return at_start_ && holds(state); }

  /// Whether every rank gets the same answer by itself: neither a clock nor a metric decides.
  bool is_clear() const { return !every_.is_timed() && !only_if_; }

  const std::optional<Condition>& only_if() const { return only_if_; }

 private:
  bool holds(const TrainState& state) const { return !only_if_ || only_if_->holds(state); }

  Every every_;
  std::optional<Condition> only_if_;
  bool at_start_;
};

}  // namespace millrace
