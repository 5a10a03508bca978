#include "millrace/trainer/every.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

std::optional<double> metric_value(const TrainState& state, const std::string& name) {
  if (name == "epoch") return state.at.progress;
  if (name == "step") return static_cast<double>(state.at.step);
  if (name == "images") return static_cast<double>(state.at.images);
  const auto of_step = std::ranges::find(state.scalars, name, &StepMetric::name);
  if (of_step != state.scalars.end()) return of_step->value;
  const auto published = state.latest.find(name);
  return published == state.latest.end() ? std::nullopt : std::optional(published->second);
}

}  // namespace

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
      "{}: \"{}\" is not a period; expected e.g. \"500 steps\", \"1 epoch\" or \"10 minutes\"",
      where, text));
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
  if (period_.unit == Period::Unit::seconds) due |= seconds_since(last_) >= period_.length;
  if (due) last_ = Clock::now();
  return due;
}

Condition::Condition(std::string_view text, const std::string& where) {
  std::istringstream words{std::string(text)};
  std::string number, more;
  std::size_t read = 0;
  bool is_one = (words >> name_ >> compare_ >> number) && !(words >> more);
  try {
    number_ = std::stod(number, &read);
  } catch (const std::logic_error&) {
    is_one = false;
  }
  constexpr std::string_view kComparisons[] = {"<", "<=", ">", ">=", "==", "!="};
  is_one = is_one && read == number.size() && std::isfinite(number_);
  if (!is_one || std::ranges::find(kComparisons, compare_) == std::end(kComparisons))
    throw ConfigError(fmt::format(
        "{}: \"{}\" is not a condition; expected e.g. \"epoch >= 8\" or \"bbox/AP > 0.3\"", where,
        text));
}

bool Condition::holds(const TrainState& state) const {
  const auto found = metric_value(state, name_);
  if (!found || std::isnan(*found)) return false;
  if (compare_ == "<") return *found < number_;
  if (compare_ == "<=") return *found <= number_;
  if (compare_ == ">") return *found > number_;
  if (compare_ == ">=") return *found >= number_;
  return (*found == number_) == (compare_ == "==");
}

const std::vector<std::string>& Condition::step_metrics() {
  static const std::vector<std::string> names = {"epoch", "step", "images",
                                                 "lr",    "loss", "gradient_norm"};
  return names;
}

}  // namespace millrace
