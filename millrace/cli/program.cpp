#include "millrace/cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/signals.h"
#include "millrace/base/text.h"

namespace millrace::cli {
namespace {

int complain(const std::string& what, int exit_code) {
  spdlog::shutdown();  // what was logged comes before
  print_to_stderr(fmt::format("trainer: error: {}\n", what));
  return exit_code;
}

/// The first word that is no flag: the subcommand, if all is well. Empty where there is none.
std::string first_word(int argc, char** argv) {
  const std::span words(argv + 1, static_cast<std::size_t>(argc - 1));
  const auto found = std::ranges::find_if(words, [](const char* word) { return *word != '-'; });
  return found == words.end() ? "" : *found;
}

/// What is wrong with the command line. CLI11 says it well, but where there is no such subcommand.
std::string explain(const CLI::ParseError& problem, const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (word.empty() || std::ranges::count(names, word)) return problem.what();
  return fmt::format("unknown subcommand '{}'{}", word, suggestion(word, names));
}

/// Standard streams that the caller has closed: without them, the next file that is opened would
/// get their number, and what is printed. Reading from them ends at once, writing fails and is
/// told.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY);
}

/// The exit code of a command that ended so: nobody has its results where standard output did not
/// take them.
int with_output(int exit_code) {
  const auto fault = output_fault();
  if (!fault) return exit_code;
  return complain(*fault, exit_code == kDone ? kFailed : exit_code);
}

/// Calls `otherwise` where the command line is not understood, or asks for help.
template <class F>
auto parse_and_run(int argc, char** argv, const std::vector<AddCommand>& commands, F otherwise)
    -> std::invoke_result_t<F, CLI::App&, const CLI::ParseError&> {
  occupy_closed_streams();
  CLI::App app{"Millrace trains object detectors from a TOML file.", "trainer"};
  app.set_version_flag("--version", "trainer " MILLRACE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "log more");
  add_examples(app, {"trainer run configs/maskrcnn.toml", "trainer eval --help"});
  Action action;
  for (const auto add : commands) add(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return otherwise(app, problem);
  }
  start_logging(verbose);
  if (!action.handles_signals) release_stop_signals();
  try {
    return with_output(action.work());
  } catch (const ConfigError& problem) {
    return complain(problem.what(), kWrongUse);
  } catch (const std::system_error& problem) {
    if (!std::ferror(stdout)) return complain(problem.what(), kFailed);
    return complain("standard output cannot be written: " + problem.code().message(), kFailed);
  } catch (const std::exception& problem) {
    return complain(problem.what(), kFailed);
  }
}

}  // namespace

std::optional<int> run_if_known(int argc, char** argv, const std::vector<AddCommand>& commands) {
  return parse_and_run(argc, argv, commands,
                       [](auto&&...) -> std::optional<int> { return std::nullopt; });
}

int run(int argc, char** argv, const std::vector<AddCommand>& commands) {
  return parse_and_run(argc, argv, commands, [&](CLI::App& app, const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int exit_code = app.exit(problem, text);
      print_text(text.str());
      return with_output(exit_code);
    }
    return complain(explain(problem, app, first_word(argc, argv)), kWrongUse);
  });
}

}  // namespace millrace::cli
