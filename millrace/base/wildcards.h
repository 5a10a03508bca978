// Names by pattern: "backbone.*".
#pragma once

#include <string_view>

namespace millrace {

/// Whether `pattern` is `text` where each * stands for any characters, also none.
bool matches_wildcards(std::string_view pattern, std::string_view text);

}  // namespace millrace
