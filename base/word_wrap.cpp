#include "millrace/base/word_wrap.h"

#include <fmt/format.h>

#include <algorithm>

namespace millrace {
namespace {

/// Returns the position of the space at which to break a line longer than `columns`; npos = none.
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

std::string without_controls(std::string_view text, std::string_view escape) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F in UTF-8
    const bool is_c0 = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
    if (is_c1) ++i;
    if (is_c0 || is_c1)
      result += fmt::format("{}{:02x}", escape, is_c1 ? next : byte);
    else
      result += text[i];
  }
  return result;
}

std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  const auto second = length > 2 ? static_cast<unsigned char>(text[1]) : 0;
  const bool is_no_character = (first == 0xE0 && second < 0xA0) ||  // overlong or surrogate
                               (first == 0xED && second > 0x9F) ||
                               (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return is_no_character ? 0 : length;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 256 * 1024;  // a table for LVIS has about 100 KiB
  const auto kept = text.substr(0, kMost);
  auto result = without_controls(kept);
  if (kept.size() < text.size())
    result += fmt::format(" ... ({} more bytes)", text.size() - kept.size());
  return result;
}

}  // namespace millrace
