// Patterns of names with numbers: "layer{a}.{b}.conv1".
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// The numbers of {a} to {d} in a name; -1 = the letter is not used.
using NameNumbers = std::array<int, 4>;

/// Returns the numbers for which the pattern equals the name; nullopt = no match. "{a-1}" matches
/// the number a - 1.
std::optional<NameNumbers> match_name(std::string_view pattern, std::string_view name);

/// Returns the pattern with the numbers filled in; nullopt if one would be below 0.
std::optional<std::string> fill_name(std::string_view pattern, const NameNumbers& numbers);

}  // namespace millrace
