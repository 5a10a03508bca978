// Formats fractions for sentences about data.
#pragma once

#include <fmt/format.h>

#include <string>

namespace millrace {

/// Returns a text such as "3.1 %" or "42 %".
inline std::string percent_text(double share) {
  const double value = 100 * share;
  return fmt::format("{:.{}f} %", value, value > 0 && value < 10 ? 1 : 0);
}

}  // namespace millrace
