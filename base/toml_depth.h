// A check of the nesting depth of a TOML document before parsing, since the parser and its trees
// recurse.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// Maximum levels of tables and arrays in a configuration; real ones have four.
constexpr std::size_t kMaxNesting = 100;

/// Throws ConfigError with the place at which `toml` nests deeper than kMaxNesting, counting dotted
/// keys, headers, arrays and inline tables. Does not recurse. Other errors are left to the parser.
void check_depth(std::string_view toml, const std::string& source);

}  // namespace millrace
