// The time at which a callback is triggered.
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

/// A condition such as "epoch >= 8" or "bbox/AP > 0.3": a metric, one of < <= > >= == !=, and a
/// number. The metrics are those of `step_metrics` and the latest that callbacks published at
/// earlier step boundaries.
class Condition {
 public:
  /// Throws ConfigError; `where` is the option's name for the message.
  explicit Condition(std::string_view text, const std::string& where = "only_if");

  /// Returns false if the metric has no value yet.
  bool holds(const TrainState& state) const;

  /// Name of the metric.
  const std::string& name() const { return name_; }

  /// Returns the metrics that every training has.
  static const std::vector<std::string>& step_metrics();

 private:
  std::string name_, compare_;
  double number_ = 0;
};

/// A period: "500 steps", "1 epoch", "0.5 epochs", "30 seconds", "10 minutes", "2 hours".
struct Period {
  enum class Unit { steps, epochs, seconds };
  double length = 1;
  Unit unit = Unit::epochs;
};

/// Parses a period. Throws ConfigError; `where` is the option's name for the message.
Period parse_period(std::string_view text, const std::string& where = "every");

/// Throws ConfigError with the origin of `key` unless `text` is empty or a valid period.
void check_period(const Config& table, std::string_view key, std::string_view text);

/// Decides after which steps a period has passed. Steps and epochs count from the start of the
/// training, so a resumed training triggers at the same steps. Seconds are measured on a steady
/// clock since construction or since the last time it was due.
class Every {
 public:
  explicit Every(Period period) : period_(period) {}

  /// Call once after each step. Also returns true after the last step.
  bool is_due(const TrainState& state);

  /// Returns true if the period is measured in time.
  bool is_timed() const { return period_.unit == Period::Unit::seconds; }

 private:
  Period period_;
  Clock::time_point last_ = Clock::now();
};

/// A period with an optional condition, optionally due before the first step as well.
class When {
 public:
  When(Every every, std::optional<Condition> only_if = std::nullopt, bool at_start = false)
      : every_(every), only_if_(std::move(only_if)), at_start_(at_start) {}

  /// Call once after each step. If the condition is false when a period ends, the trigger is
  /// skipped, not delayed.
  bool is_due(const TrainState& state) { return every_.is_due(state) && holds(state); }

  /// Call once before the first step.
  bool is_due_at_start(const TrainState& state) const { return at_start_ && holds(state); }

  /// Returns true if every rank computes the same result without communication: the period is not
  /// timed and there is no condition on a metric.
  bool is_clear() const { return !every_.is_timed() && !only_if_; }

  const std::optional<Condition>& only_if() const { return only_if_; }

 private:
  bool holds(const TrainState& state) const { return !only_if_ || only_if_->holds(state); }

  Every every_;
  std::optional<Condition> only_if_;
  bool at_start_;
};

}  // namespace millrace
