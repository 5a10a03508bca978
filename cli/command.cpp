#include "cli/command.h"

#include <fmt/format.h>

#include <cstdio>

namespace millrace::cli {
namespace {

CLI::Validator numbers(const char* which, bool (*fit)(double)) {
  return {[=](const std::string& text) -> std::string {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && fit(value)) return {};
            return fmt::format("takes numbers {}, not '{}'", which, text);
          },
          ""};
}

}  // namespace

CLI::Validator positive() {
  return numbers("above 0", [](double value) { return value > 0; });
}

CLI::Validator not_negative() {
  return numbers("from 0 on", [](double value) { return value >= 0; });
}

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
