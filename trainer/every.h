// When a callback is triggered, apart from what it then does.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer/callback.h"

namespace millrace {

/// "500 steps", "1 epoch", "0.5 epochs", "30 seconds", "10 minutes", "2 hours".
struct Period {
  enum class Unit { steps, epochs, seconds };
  double length = 1;
  Unit unit = Unit::epochs;
};

/// Throws ConfigError quoting the text; `where` says whose it is.
Period parse_period(std::string_view text, const std::string& where = "every");

/// Passes all hooks on to `callback` and triggers it after each step at which a period has passed,
/// and after the last. Steps and epochs count from the beginning of the training, so that a resumed
/// one triggers at the same steps.
std::unique_ptr<Callback> every(Period period, std::unique_ptr<Callback> callback);

}  // namespace millrace
