#include "millrace/base/options.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <utility>

namespace millrace {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"hour", 3600}, {"minute", 60}, {"second", 1}};

}  // namespace

std::optional<Quantity> parse_quantity(std::string_view text) {
  std::istringstream words{std::string(text)};
  Quantity quantity;
  std::string more;
  if (!(words >> quantity.count >> quantity.unit) || words >> more) return std::nullopt;
  if (!(quantity.count >= 0) || !std::isfinite(quantity.count)) return std::nullopt;
  if (quantity.unit.ends_with('s')) quantity.unit.pop_back();
  return quantity;
}

std::optional<double> seconds_of(const Quantity& quantity) {
  for (const auto& [unit, seconds] : kUnits)
    if (unit == quantity.unit) return quantity.count * seconds;
  return std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto quantity = parse_quantity(text);
  const auto seconds = quantity ? seconds_of(*quantity) : std::nullopt;
  return seconds ? std::optional(Duration{*seconds}) : std::nullopt;
}

std::string duration_in_words(double seconds) {
  for (const auto& [unit, length] : kUnits) {
    const auto count = seconds / length;
    if (length > 1 && (count < 1 || count != std::floor(count))) continue;
    return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s");
  }
  return {};  // the last unit always fits
}

}  // namespace millrace
