// Lengths of time and of training as configurations write them: a number and a unit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// A length of time: "30 seconds", "5 minutes", "2 hours".
struct Duration {
  double seconds = 0;
};

/// A finite number that is not negative, and its unit without an s at its end: {500, "step"} of
/// "500 steps".
struct Quantity {
  double count = 0;
  std::string unit;
};

/// Nothing where a text is something else than a number and a word.
std::optional<Quantity> parse_quantity(std::string_view text);

/// Nothing where it is no length of time.
std::optional<double> seconds_of(const Quantity& quantity);
std::optional<Duration> parse_duration(std::string_view text);

/// "5 minutes", "1 hour", "0.5 seconds": in the largest unit in which it is a whole number, else in
/// seconds.
std::string duration_in_words(double seconds);

}  // namespace millrace
