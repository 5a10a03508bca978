#include "millrace/base/wildcards.h"

#include <cstddef>

namespace millrace {

bool matches_wildcards(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  // The last *, and where what it stands for ends
  std::size_t star = std::string_view::npos, behind = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      behind = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++behind;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace millrace
