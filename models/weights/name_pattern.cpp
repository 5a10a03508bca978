#include "millrace/models/weights/name_pattern.h"

#include <charconv>

namespace millrace {
namespace {

/// A field like "{a+1}" at the start of a pattern.
struct Field {
  std::size_t letter;
  int offset;
  std::size_t length;
};

Field field_at(std::string_view pattern) {
  Field field{static_cast<std::size_t>(pattern[1] - 'a'), 0, pattern.find('}') + 1};
  if (field.length == 3) return field;
  std::from_chars(pattern.data() + 3, pattern.data() + field.length, field.offset);
  if (pattern[2] == '-') field.offset = -field.offset;
  return field;
}

}  // namespace

std::optional<NameNumbers> match_name(std::string_view pattern, std::string_view name) {
  NameNumbers numbers;
  numbers.fill(-1);
  while (!pattern.empty()) {
    if (pattern[0] != '{') {
      if (name.empty() || name[0] != pattern[0]) return {};
      pattern.remove_prefix(1);
      name.remove_prefix(1);
      continue;
    }
    const auto field = field_at(pattern);
    const auto digits = name.substr(0, name.find_first_not_of("0123456789"));
    if (digits.empty() || digits.size() > 5 || (digits.size() > 1 && digits[0] == '0')) return {};
    std::from_chars(digits.data(), digits.data() + digits.size(), numbers[field.letter]);
    numbers[field.letter] -= field.offset;
    if (numbers[field.letter] < 0) return {};
    pattern.remove_prefix(field.length);
    name.remove_prefix(digits.size());
  }
  if (!name.empty()) return {};
  return numbers;
}

std::optional<std::string> fill_name(std::string_view pattern, const NameNumbers& numbers) {
  std::string name;
  while (!pattern.empty()) {
    if (pattern[0] != '{') {
      name += pattern[0];
      pattern.remove_prefix(1);
      continue;
    }
    const auto field = field_at(pattern);
    const int number = numbers[field.letter] + field.offset;
    if (number < 0) return {};
    name += std::to_string(number);
    pattern.remove_prefix(field.length);
  }
  return name;
}

}  // namespace millrace
