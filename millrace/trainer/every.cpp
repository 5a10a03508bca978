#include "millrace/trainer/every.h"

#include <fmt/format.h>

#include <cmath>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

Period parse_period(std::string_view text, const std::string& where) {
  if (const auto quantity = parse_quantity(text); quantity && quantity->count > 0) {
    if (const auto seconds = seconds_of(*quantity)) return {*seconds, Period::Unit::seconds};
    if (quantity->unit == "epoch") return {quantity->count, Period::Unit::epochs};
    if (quantity->unit == "step") {
      if (quantity->count == std::floor(quantity->count))
        return {quantity->count, Period::Unit::steps};
      throw ConfigError(fmt::format("{}: \"{}\" is not a whole number of steps", where, text));
    }
  }
  throw ConfigError(fmt::format(
      "{}: \"{}\" is no period; write it as \"500 steps\", \"1 epoch\" or \"10 minutes\"", where,
      text));
}

void check_period(const Config& table, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  const auto* value = table.find(key);
  parse_period(text, fmt::format("{}: {}", (value ? value->origin : table.origin).text(), key));
}

bool Every::is_due(const TrainState& state) {
  const auto crossed = [&](double before, double now) {
    return std::floor(now / period_.length + 1e-9) > std::floor(before / period_.length + 1e-9);
  };
  const auto step = static_cast<double>(state.at.step);
  bool due = state.is_last;
  if (period_.unit == Period::Unit::steps) due |= crossed(step - 1, step);
  if (period_.unit == Period::Unit::epochs)
    due |= crossed(state.previous_progress, state.at.progress);
  if (period_.unit == Period::Unit::seconds)
    due |= std::chrono::duration<double>(Clock::now() - last_).count() >= period_.length;
  if (due) last_ = Clock::now();
  return due;
}

}  // namespace millrace
