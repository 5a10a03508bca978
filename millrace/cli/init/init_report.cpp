#include "millrace/cli/init/init_report.h"

#include <cstdio>

#include "millrace/base/word_wrap.h"

namespace millrace::cli {

void InitReport::say(const std::string& what, const std::string& text) {
  json[what] = text;
  tell(what + ": " + text);
}

void InitReport::tell(const std::string& text) { tell_line(wrapped(text, 80, "    ") + '\n'); }

void InitReport::tell_line(const std::string& line) {
  if (as_json_) return;
  print_text(line);
  std::fflush(stdout);
}

}  // namespace millrace::cli
