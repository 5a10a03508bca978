// When a callback is triggered, apart from what it then does.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

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

/// Says after which steps a period has passed. Steps and epochs count from the beginning of the training, so that a
/// resumed one triggers at the same steps; seconds count from when this was made or last said so.
class Every {
 public:
  explicit Every(Period period) : period_(period) {}

  /// Ask once after each step. True after the last step too.
  bool is_due(const TrainState& state);

 private:
  using Clock = std::chrono::steady_clock;

  Period period_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace millrace
