// trainer: the command line of Millrace.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/passive_wait.h"

namespace millrace::cli {
namespace {

int complain(const std::string& what, int exit_code) {
  spdlog::shutdown();  // what was logged comes before
  fmt::print(stderr, "trainer: error: {}\n", what);
  return exit_code;
}

/// What is wrong with the command line. CLI11 says it well, but where the first word is no subcommand.
std::string explain(const CLI::ParseError& problem, const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const std::span words(argv + 1, static_cast<std::size_t>(argc - 1));
  const auto first = std::ranges::find_if(words, [](const char* word) { return *word != '-'; });
  if (first == words.end() || std::ranges::count(names, *first)) return problem.what();
  return fmt::format("unknown subcommand '{}'{}", *first, suggestion(*first, names));
}

int run_command(const Action& action) {
  try {
    return action();
  } catch (const ConfigError& problem) {
    return complain(problem.what(), kWrongUse);
  } catch (const std::exception& problem) {
    return complain(problem.what(), kFailed);
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Millrace trains object detectors from a TOML file.", "trainer"};
  app.set_version_flag("--version", "trainer " MILLRACE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "log more");
  add_examples(app, {"trainer run configs/maskrcnn.toml", "trainer eval --help"});

  Action action;
  for (const auto add :
       {add_run, add_eval, add_coco_eval, add_predict, add_sample, add_config, add_list, add_bench})
    add(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);  // --help, --version
    return complain(explain(problem, app, argc, argv), kWrongUse);
  }
  start_logging(verbose);
  return run_command(action);
}

}  // namespace
}  // namespace millrace::cli

int main(int argc, char** argv) {
  millrace::cli::wait_passively(argv);
  return millrace::cli::run(argc, argv);
}
