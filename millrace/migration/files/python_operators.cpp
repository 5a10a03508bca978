#include "millrace/migration/files/python_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr std::size_t kLongest = 100000;  // elements that an expression may make

Value::Data arithmetic(const std::string& sign, const Value& left, const Value& right,
                       const PythonTokens& tokens) {
  const auto real = [&](const Value& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value.data))
      return static_cast<double>(*whole);
    if (const auto* number = std::get_if<double>(&value.data)) return *number;
    tokens.fail(fmt::format("{} {} {}: numbers are needed", left.text(), sign, right.text()));
  };
  const double x = real(left), y = real(right);
  if (y == 0 && (sign == "/" || sign == "//" || sign == "%")) tokens.fail("division by zero");
  double result = 0;
  if (sign == "+") result = x + y;
  if (sign == "-") result = x - y;
  if (sign == "*") result = x * y;
  if (sign == "/") result = x / y;
  if (sign == "//") result = std::floor(x / y);
  if (sign == "%") result = x - std::floor(x / y) * y;
  if (sign == "**") result = std::pow(x, y);
  if (!std::isfinite(result))
    tokens.fail(fmt::format("{} {} {} is no finite number", left.text(), sign, right.text()));
  const bool whole = std::holds_alternative<std::int64_t>(left.data) &&
                     std::holds_alternative<std::int64_t>(right.data) && sign != "/" &&
                     result == std::floor(result) && std::abs(result) < 9e15;
  if (whole) return static_cast<std::int64_t>(result);
  return result;
}

}  // namespace

Value combined(const std::string& sign, Value left, const Value& right,
               const PythonTokens& tokens) {
  const auto place = left.place;
  const auto* text = std::get_if<std::string>(&left.data);
  const auto* more = std::get_if<std::string>(&right.data);
  if (sign == "+" && text && more) return {*text + *more, place};
  if (sign == "+" && left.is_list() && right.is_list()) {
    auto all = left.list();
    all.insert(all.end(), right.list().begin(), right.list().end());
    check_size(all.size(), tokens);
    return {std::move(all), place};
  }
  const auto* times = std::get_if<std::int64_t>(&right.data);
  if (sign == "*" && left.is_list() && times) {
    check_size(left.list().size() * static_cast<std::size_t>(std::clamp<std::int64_t>(
                                        *times, 0, static_cast<std::int64_t>(kLongest) + 1)),
               tokens);
    Value::List all;
    for (std::int64_t i = 0; i < *times; ++i)
      all.insert(all.end(), left.list().begin(), left.list().end());
    return {std::move(all), place};
  }
  return {arithmetic(sign, left, right, tokens), place};
}

void check_size(std::size_t elements, const PythonTokens& tokens) {
  if (elements > kLongest) tokens.fail("a list of more than 100,000 elements");
}

}  // namespace millrace
