// When a callback is triggered, apart from what it then does.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "millrace/base/config.h"
#include "millrace/trainer/condition.h"

namespace millrace {

class TrainState;

/// "500 steps", "1 epoch", "0.5 epochs", "30 seconds", "10 minutes", "2 hours".
struct Period {
  enum class Unit { steps, epochs, seconds };
  double length = 1;
  Unit unit = Unit::epochs;
};

/// Throws ConfigError quoting the text; `where` says whose it is.
Period parse_period(std::string_view text, const std::string& where = "every");

/// For the `check` of options: throws ConfigError with the place of `key`, unless `text` is a
/// period or empty.
void check_period(const Config& table, std::string_view key, std::string_view text);

/// Says after which steps a period has passed. Steps and epochs count from the beginning of the
/// training, so that a resumed one triggers at the same steps; seconds count from when this was
/// made or last said so, on a clock that nobody can set, and from the start again where a training
/// is resumed.
class Every {
 public:
  explicit Every(Period period) : period_(period) {}

  /// Ask once after each step. True after the last step too.
  bool is_due(const TrainState& state);

  /// Whether a clock decides.
  bool is_timed() const { return period_.unit == Period::Unit::seconds; }

 private:
  using Clock = std::chrono::steady_clock;

  Period period_;
  Clock::time_point last_ = Clock::now();
};

/// When a callback is triggered: every so often, where a condition holds then; and perhaps before
/// the first step.
class When {
 public:
  When(Every every, std::optional<Condition> only_if = std::nullopt, bool at_start = false)
      : every_(every), only_if_(std::move(only_if)), at_start_(at_start) {}

  /// Ask once after each step. A period that ends while the condition does not hold has passed all
  /// the same.
  bool is_due(const TrainState& state) { return every_.is_due(state) && holds(state); }

  /// Ask once, before the first step.
  bool is_due_at_start(const TrainState& state) const { return at_start_ && holds(state); }

  /// Whether every rank comes to the same answer by itself: neither a clock nor a figure decides.
  bool is_clear() const { return !every_.is_timed() && !only_if_; }

  const std::optional<Condition>& only_if() const { return only_if_; }

 private:
  bool holds(const TrainState& state) const { return !only_if_ || only_if_->holds(state); }

  Every every_;
  std::optional<Condition> only_if_;
  bool at_start_;
};

}  // namespace millrace
