// Shares as sentences about data name them.
#pragma once

#include <fmt/format.h>

#include <string>

namespace millrace {

/// "3.1 %", "42 %"
inline std::string percent_text(double share) {
  const double value = 100 * share;
  return fmt::format("{:.{}f} %", value, value > 0 && value < 10 ? 1 : 0);
}

}  // namespace millrace
