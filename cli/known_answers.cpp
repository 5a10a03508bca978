#include "millrace/cli/known_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/cli/command.h"
#include "millrace/cli/known_texts.h"
#include "millrace/cli/list_text.h"

namespace millrace::cli {
namespace {

using Words = std::span<char*>;

bool are(Words words, std::initializer_list<std::string_view> expected) {
  return std::ranges::equal(words, expected);
}

int complain(std::string_view why, int exit_code) {
  print_to_stderr(fmt::format("trainer: error: {}\n", why));
  return exit_code;
}

int end_of_output() {
  const auto fault = output_fault();
  return fault ? complain(*fault, kFailed) : kDone;
}

int print_known_list() {
  for (std::string_view text = kListText; !text.empty();) {
    const auto line = text.substr(0, text.find('\n') + 1);
    print_list_line(line);
    text.remove_prefix(line.size());
  }
  suggest_after_list();
  return end_of_output();
}

/// Of a command line that begins with a command and its configuration.
std::optional<int> answer_faulty_configuration(Words words) {
  constexpr std::array<std::string_view, 3> kCommands = {"run", "config", "eval"};
  if (words.size() < 2 || !std::ranges::count(kCommands, words[0])) return {};
  const std::filesystem::path file = words[1];
  std::error_code unknown;
  if (file.extension() != ".toml" || !std::filesystem::is_regular_file(file, unknown)) return {};
  try {
    load_config(file);
    return {};
  } catch (const ConfigError& problem) {
    return complain(problem.what(), kWrongUse);
  } catch (const std::exception&) {  // told where it is read again
    return {};
  }
}

}  // namespace

std::optional<int> answer_what_is_known(int argc, char** argv) {
  const auto words = Words(argv, static_cast<std::size_t>(argc)).subspan(1);
  const bool help = are(words, {"--help"}) || are(words, {"-h"});
  const bool list = are(words, {"list"}), json = are(words, {"list", "--json"});
  if (!help && !list && !json) return answer_faulty_configuration(words);
  release_stop_signals();
  if (list) return print_known_list();
  print_text(help ? kHelpText : kListJson);
  return end_of_output();
}

}  // namespace millrace::cli
