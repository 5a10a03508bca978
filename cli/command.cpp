#include "millrace/cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "millrace/base/log.h"
#include "millrace/base/word_wrap.h"

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

int first_fault = 0;  // errno of the first write to standard output that failed

void note_fault(bool failed) {
  if (failed && first_fault == 0) first_fault = errno;
}

}  // namespace

CLI::Validator positive() {
  return numbers("above 0", [](double value) { return value > 0; });
}

CLI::Validator not_negative() {
  return numbers("from 0 on", [](double value) { return value >= 0; });
}

void add_renamed(CLI::App& command, const std::string& old_name, const std::string& new_name) {
  const auto refuse = [=](const std::string&) {
    throw CLI::ValidationError(old_name, "is now called " + new_name);
  };
  command.add_option_function<std::string>(old_name, refuse)->group("");
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json,
                   "print one JSON object in one line, and nothing else, on standard output");
}

void print_text(std::string_view text) {
  const auto shown = without_controls(text);
  note_fault(std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size());
}

void suggest_next(std::string_view what) {
  if (log_is_quiet() || ::isatty(STDOUT_FILENO) == 0) return;
  (void)std::fflush(stdout);
  print_to_stderr(fmt::format("next: {}\n", what));
}

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void print(const Json& json) {
  print_text(without_controls(json_text(json), "\\u00") + "\n");
  note_fault(std::fflush(stdout) != 0);
}

std::optional<std::string> output_fault() {
  note_fault(std::fflush(stdout) != 0);
  if (first_fault == 0 && !std::ferror(stdout)) return std::nullopt;
  return std::string("standard output cannot be written") +
         (first_fault != 0 ? std::string(": ") + std::strerror(first_fault) : "");
}

void add_examples(CLI::App& command, const std::vector<std::string>& examples) {
  command.footer(fmt::format("Examples:\n  {}", fmt::join(examples, "\n  ")));
}

}  // namespace millrace::cli
