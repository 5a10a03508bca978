#include "millrace/base/word_wrap.h"

#include <algorithm>

namespace millrace {
namespace {

/// Where to break a line that is longer than `columns`; npos: nowhere.
std::size_t break_of(std::string_view line, std::size_t columns) {
  const auto begin = line.find_first_not_of(' ');
  if (begin == line.npos) return line.npos;
  const auto last = line.rfind(' ', columns);
  return last != line.npos && last > begin ? last : line.find(' ', begin);
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns, std::string_view indent) {
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    std::string line(text.substr(begin, end - begin));
    while (line.size() > columns) {
      const auto at = break_of(line, columns);
      const auto next = at == line.npos ? line.npos : line.find_first_not_of(' ', at);
      if (next == line.npos) break;
      result += line.substr(0, line.find_last_not_of(' ', at) + 1) + '\n';
      line = std::string(indent) + line.substr(next);
    }
    result += line;
    if (end < text.size()) result += '\n';
    begin = end + 1;
  }
  return result;
}

}  // namespace millrace
