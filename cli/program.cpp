#include "millrace/cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <system_error>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/process/uncaught_exceptions.h"
#include "millrace/base/text.h"
#include "millrace/base/word_wrap.h"

namespace millrace::cli {
namespace {

/// CLI11's help with descriptions wrapped to 80 columns. Examples are not wrapped, so that they can
/// be copied.
class WrappedHelp final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return wrapped(Formatter::make_description(app), kColumns, "");
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return beside_names(Formatter::make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream text;
    CLI::detail::format_help(text, command->get_display_name(true),
                             beside_names(command->get_description()), get_column_width());
    return text.str();
  }

 private:
  static constexpr std::size_t kColumns = 80;

  std::string beside_names(const std::string& text) const {
    return wrapped(text, kColumns - get_column_width(), "");
  }
};

/// Returns what is wrong with the command line: CLI11's message, except for an unknown subcommand.
std::string explain(const CLI::ParseError& problem, const CLI::App& app,
                    std::span<char*> arguments) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const auto word = std::ranges::find_if(arguments, [](const char* one) { return *one != '-'; });
  if (word == arguments.end() || std::ranges::count(names, *word)) return problem.what();
  return fmt::format("unknown subcommand '{}'{}", *word, suggestion(*word, names));
}

/// Returns true if the command line names a command and not only a group of commands. A program
/// that lacks some commands must not list the others as if they were all.
bool names_a_command(const CLI::App& app) {
  const auto named = app.get_subcommands();
  if (!named.empty()) return names_a_command(*named.front());
  return app.get_subcommands([](const CLI::App*) { return true; }).empty();
}

/// Opens standard streams that the caller has closed, so that no other file gets their descriptor
/// and the program's output. Reading from them ends at once; writing fails and is reported.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY);
}

/// Returns the exit code of a command that ended with `exit_code`: a failure if its results could
/// not be written to standard output.
int with_output(int exit_code) {
  const auto fault = output_fault();
  if (!fault) return exit_code;
  return report_error(*fault, exit_code == kDone ? kFailed : exit_code);
}

}  // namespace

int report_error(const std::string& what, int exit_code) {
  spdlog::shutdown();  // prints what was logged first
  print_to_stderr(fmt::format("trainer: error: {}\n", what));
  return exit_code;
}

std::optional<int> run(int argc, char** argv, const std::vector<AddCommand*>& commands, bool all,
                       const std::function<std::string()>& more_version) {
  occupy_closed_streams();
  CLI::App app{"Millrace trains object detectors from a TOML file.", "trainer"};
  app.set_version_flag("--version", [&] {
    return "trainer " MILLRACE_VERSION + (more_version ? more_version() : std::string());
  });
  app.formatter(std::make_shared<WrappedHelp>());  // inherited by the subcommands
  app.require_subcommand(1);
  app.fallthrough();
  bool verbose = false, quiet = false;
  app.add_flag("-v,--verbose", verbose, "log more details");
  app.add_flag("-q,--quiet", quiet, "show only warnings, errors and the result")
      ->excludes("--verbose");
  add_examples(app, {"trainer run configs/maskrcnn.toml", "trainer eval --help"});
  Action action;
  for (const auto add : commands) add(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    const bool is_help = dynamic_cast<const CLI::CallForHelp*>(&problem) != nullptr;
    if (!all && !(is_help && names_a_command(app))) return std::nullopt;
    if (problem.get_exit_code() != 0)
      return report_error(
          explain(problem, app, std::span(argv, static_cast<std::size_t>(argc)).subspan(1)),
          kWrongUse);
    std::ostringstream text;  // output of --help or --version
    const int exit_code = app.exit(problem, text);
    print_text(text.str());
    return with_output(exit_code);
  }
  start_logging(quiet ? LogLevel::quiet : verbose ? LogLevel::verbose : LogLevel::usual);
  report_uncaught_exceptions();
  if (!action.handles_signals) release_stop_signals();
  try {
    return with_output(action.work());
  } catch (const NeedsLibtorch&) {
    hold_stop_signals();
    return std::nullopt;
  } catch (const ConfigError& problem) {
    return report_error(sentence_of(problem.what()), kWrongUse);
  } catch (const std::system_error& problem) {
    if (!std::ferror(stdout)) return report_error(problem.what(), kFailed);
    return report_error("cannot write to standard output: " + problem.code().message(), kFailed);
  } catch (const std::exception& problem) {
    return report_error(sentence_of(problem.what()), kFailed);
  }
}

}  // namespace millrace::cli
