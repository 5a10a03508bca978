#include "millrace/cli/describe/shell_text.h"

#include <fmt/format.h>

namespace millrace::cli {

std::string quoted_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string quoted_words(const std::vector<std::string>& words, const char* format) {
  std::string text;
  for (const auto& word : words) text += fmt::format(fmt::runtime(format), quoted_word(word));
  return text;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string filled(std::string script,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  for (const auto& [name, value] : values) script.replace(script.find(name), name.size(), value);
  return script;
}

}  // namespace millrace::cli
