// Names with numbers in them: "layer{a}.{b}.conv1".
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// The numbers for {a} to {d} in a name; -1: the letter is not used.
using NameNumbers = std::array<int, 4>;

/// The numbers for which the pattern is this name. "{a-1}" stands for a - 1.
std::optional<NameNumbers> match_name(std::string_view pattern, std::string_view name);

/// The pattern with these numbers filled in; nothing if one would be below 0.
std::optional<std::string> fill_name(std::string_view pattern, const NameNumbers& numbers);

}  // namespace millrace
