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
#include "millrace/cli/command.h"
#include "millrace/cli/command_docs.h"
#include "millrace/cli/program.h"

namespace millrace::cli {
namespace {

using namespace std::string_view_literals;
using Words = std::span<char*>;

/// Declares all subcommands, without what they take.
void add_names(CLI::App& app, Action&) {
  for (const auto& [name, doc] : command_docs()) app.add_subcommand(name, doc);
}

int complain(std::string_view why, int exit_code) {
  print_to_stderr(fmt::format("trainer: error: {}\n", why));
  return exit_code;
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
  if (words.size() != 1 || !std::ranges::count(std::array{"--help"sv, "-h"sv}, words[0]))
    return answer_faulty_configuration(words);
  return run(argc, argv, {add_names}, /*all=*/true);
}

}  // namespace millrace::cli
