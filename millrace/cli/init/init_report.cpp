#include "millrace/cli/init/init_report.h"

#include <algorithm>
#include <cstdio>

#include "millrace/base/log.h"

namespace millrace::cli {
namespace {

/// Words in lines of 80 columns, those after the first indented.
std::string in_lines(const std::string& text) {
  constexpr std::size_t kColumns = 80;
  std::string result, line;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    const auto word = text.substr(begin, end - begin);
    if (line.size() + 1 + word.size() > kColumns && !line.empty()) {
      result += line + '\n';
      line = "    " + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    begin = end + 1;
  }
  return result + line + '\n';
}

}  // namespace

void InitReport::say(const std::string& what, const std::string& text) {
  json[what] = text;
  tell(what + ": " + text);
}

void InitReport::tell(const std::string& text) { tell_line(in_lines(text)); }

void InitReport::tell_line(const std::string& line) {
  if (as_json_) return;
  print_text(line);
  std::fflush(stdout);
}

}  // namespace millrace::cli
