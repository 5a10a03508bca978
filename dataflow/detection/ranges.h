// Ranges of options given as two numbers.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

namespace millrace {

/// Throws std::invalid_argument naming the stage where `low` is above `high`.
inline void check_range(std::string_view stage, std::string_view low_name, double low,
                        std::string_view high_name, double high) {
  if (!(low <= high))
    throw std::invalid_argument(
        fmt::format("{}: {} = {} is above {} = {}", stage, low_name, low, high_name, high));
}

}  // namespace millrace
