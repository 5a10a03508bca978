// trainer: the command line of Millrace. Commands that need no tensors run here, without the
// quarter of a second and the 170 MB that libtorch takes to start; trainer-torch runs all others.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "millrace/base/errors.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/cli/command.h"
#include "millrace/cli/flow_recipe.h"
#include "millrace/cli/libtorch.h"
#include "millrace/cli/program.h"

using namespace millrace;
using namespace std::string_view_literals;

namespace {

/// Declares all subcommands, without their arguments.
void add_names(CLI::App& app, cli::Action&) {
  for (const auto& [name, doc] : cli::command_docs()) app.add_subcommand(name, doc);
}

/// Reports a faulty configuration if the command line begins with a command and a TOML file.
/// Returns the exit code; nullopt, without printing, if there is no fault.
std::optional<int> answer_faulty_configuration(std::span<char*> words) {
  constexpr std::array kCommands = {"run"sv, "config"sv, "eval"sv};
  if (words.size() < 2 || !std::ranges::count(kCommands, words[0])) return {};
  const std::filesystem::path file = words[1];
  std::error_code unknown;
  if (file.extension() != ".toml" || !std::filesystem::is_regular_file(file, unknown)) return {};
  try {
    load_config(file);
    return {};
  } catch (const ConfigError& problem) {
    return cli::report_error(problem.what(), kWrongUse);
  } catch (const std::exception&) {  // reported when trainer-torch reads it again
    return {};
  }
}

/// Handles command lines that need no libtorch although only trainer-torch has all commands:
/// `--help`, and those that name a faulty configuration first, such as `run FILE.toml`. Returns the
/// exit code; nullopt, without printing, for any other command line.
std::optional<int> handle_without_libtorch(int argc, char** argv) {
  const auto words = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  if (words.size() != 1 || !std::ranges::count(std::array{"--help"sv, "-h"sv}, words[0]))
    return answer_faulty_configuration(words);
  return cli::run(argc, argv, {add_names}, /*all=*/true);
}

/// Ends a command that needs libtorch if no suitable one was found.
int without_libtorch(const std::exception& why, bool asks_for_version) {
  if (!asks_for_version) return cli::report_error(why.what(), kFailed);
  cli::print_formatted("trainer " MILLRACE_VERSION "\nno libtorch: {}\n", why.what());
  return cli::output_fault() ? kFailed : kDone;
}

/// Reads the settings of a flow. Leaves configurations with plug-ins or with unknown tables to
/// trainer-torch.
cli::FlowRecipe read_flow(const cli::ConfigFileArguments& arguments) {
  constexpr std::array kTables = {"data"sv,      "model"sv,    "train"sv,
                                  "optimizer"sv, "schedule"sv, "callbacks"sv};
  const auto from = arguments.tree();
  for (const auto& [name, value] : from.table())
    if (!std::ranges::count(kTables, name)) throw cli::NeedsLibtorch();
  Config complete;
  return {resolve_data(from, complete), seed_of(from)};
}

/// Declares the part of `bench` that needs no tensors.
void add_data_bench(CLI::App& app, cli::Action& action) {
  auto* command = app.add_subcommand("bench");
  command->require_subcommand(1);
  cli::add_bench_dataflow(*command, action, read_flow);
}

}  // namespace

int main(int argc, char** argv) {
  hold_stop_signals();
  survive_file_size_limit();
  if (const auto exit_code =
          cli::run(argc, argv,
                   {cli::add_coco_eval, cli::add_diff, cli::add_import, cli::add_import_config,
                    cli::add_report, cli::add_status, cli::add_study, add_data_bench},
                   /*all=*/false))
    return *exit_code;
  if (const auto exit_code = handle_without_libtorch(argc, argv)) return *exit_code;
  // OpenMP's threads should spin only briefly at barriers (docs/decisions/0003). The OpenMP runtime
  // reads this setting from the environment when it is loaded.
  if (!std::getenv("OMP_WAIT_POLICY") && !std::getenv("GOMP_SPINCOUNT"))
    setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/1);
  try {
    cli::add_libtorch_to_library_path();
  } catch (const std::exception& problem) {  // also if a folder is not readable
    return without_libtorch(problem, argc == 2 && argv[1] == std::string_view("--version"));
  }
  std::error_code unknown;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path() / "trainer-torch";
  execv(beside.c_str(), argv);  // blocked signals stay blocked
  return cli::report_error(
      fmt::format("cannot start {}: {}; it must be in the folder of trainer; build or install both",
                  beside.string(), std::strerror(errno)),
      kFailed);
}
