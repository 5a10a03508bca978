#include "cli/command.h"

#include <fmt/format.h>

#include <cstdio>

namespace millrace::cli {

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json,
                   "print one JSON object in one line, and nothing else, on standard output");
}

void print(const Json& json) {
  // Names of files need not be UTF-8.
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

void add_examples(CLI::App& command, const std::vector<std::string>& examples) {
  command.footer(fmt::format("Examples:\n  {}", fmt::join(examples, "\n  ")));
}

}  // namespace millrace::cli
