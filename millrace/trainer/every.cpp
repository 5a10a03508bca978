#include "millrace/trainer/every.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <sstream>

#include "millrace/base/errors.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

Period parse_period(std::string_view text, const std::string& where) {
  static const std::map<std::string, std::pair<double, Period::Unit>> kUnits = {
      {"step", {1, Period::Unit::steps}},      {"epoch", {1, Period::Unit::epochs}},
      {"second", {1, Period::Unit::seconds}},  {"minute", {60, Period::Unit::seconds}},
      {"hour", {3600, Period::Unit::seconds}},
  };
  std::istringstream words{std::string(text)};
  double count = 0;
  std::string unit, more;
  const bool two_words = (words >> count >> unit) && !(words >> more);
  if (unit.ends_with('s')) unit.pop_back();
  const auto known = kUnits.find(unit);
  if (!two_words || known == kUnits.end() || !(count > 0) || !std::isfinite(count))
    throw ConfigError(fmt::format(
        "{}: \"{}\" is no period; write it as \"500 steps\", \"1 epoch\" or \"10 minutes\"", where,
        text));
  if (known->second.second == Period::Unit::steps && count != std::floor(count))
    throw ConfigError(fmt::format("{}: \"{}\" is not a whole number of steps", where, text));
  return {count * known->second.first, known->second.second};
}

std::optional<Period> read_period(const Config& table, std::string_view key,
                                  std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto* value = table.find(key);
  return parse_period(text,
                      fmt::format("{}: {}", (value ? value->origin : table.origin).text(), key));
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
