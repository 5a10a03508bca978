// How deep a TOML document nests, found out before it is parsed: the parser and the trees that it
// makes recurse.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// Levels of tables and arrays that a configuration may have; real ones have four.
constexpr std::size_t kMostLevels = 100;

/// Throws ConfigError naming the place where `toml` nests deeper than kMostLevels: by dotted keys,
/// headers, arrays and inline tables together. Reads the text once, without recursion, and leaves
/// all other faults to the parser.
void check_depth(std::string_view toml, const std::string& source);

}  // namespace millrace
