// Helpers that the subcommands share. Each subcommand has its own file, which declares its
// arguments and sets the action that runs once all arguments are parsed.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/process/exit_codes.h"

namespace millrace::cli {

/// The work that the command line requests; `work` returns the exit code.
struct Action {
  std::function<int()> work;
  /// True if `work` releases the stop signals itself, once it handles them; main blocks them from
  /// its first line on. Otherwise they are released before `work` and kill the process as usual.
  bool handles_signals = false;
};

/// A command's description in the program's --help. Both programs have all descriptions, although
/// `trainer` runs only some of the commands.
struct CommandSummary {
  const char *name, *doc;
};

/// Returns all commands in the order of --help.
std::span<const CommandSummary> command_docs();

/// REQUIRES: the command exists.
std::string doc_of(std::string_view command);

/// Declares a subcommand that calls `work` with its arguments. Returns the subcommand, to add
/// options to, and the arguments, which parsing fills.
template <class Arguments>
std::pair<CLI::App&, Arguments&> add_subcommand(CLI::App& app, Action& action,
                                                const std::string& name, const std::string& doc,
                                                int (*work)(const Arguments&),
                                                bool handles_signals = false) {
  auto& command = *app.add_subcommand(name, doc);
  const auto arguments = std::make_shared<Arguments>();
  command.callback([=, &action] { action = {[=] { return work(*arguments); }, handles_signals}; });
  return {command, *arguments};
}

/// Adds a top-level command with its description from command_docs().
template <class Arguments>
std::pair<CLI::App&, Arguments&> add_subcommand(CLI::App& app, Action& action,
                                                const std::string& name,
                                                int (*work)(const Arguments&),
                                                bool handles_signals = false) {
  return add_subcommand(app, action, name, doc_of(name), work, handles_signals);
}

/// The type of a function that declares a subcommand.
using AddCommand = void(CLI::App& app, Action& action);
AddCommand add_run, add_eval, add_coco_eval, add_predict, add_sample, add_config, add_pack,
    add_convert, add_doctor, add_export, add_import, add_import_config, add_index, add_init,
    add_inspect, add_list, add_bench, add_serve, add_check_gpu, add_report, add_status, add_diff,
    add_study, add_completion, add_man;
// Subcommands of `bench`.
AddCommand add_bench_eval, add_bench_model;

/// Validators for numbers with readable error messages.
CLI::Validator positive();
CLI::Validator not_negative();

/// Adds an option whose value --help shows as `type`, for example "FILE".
template <class T>
CLI::Option* add_option(CLI::App& command, const std::string& names, T& value,
                        const std::string& type, const std::string& doc) {
  return command.add_option(names, value, doc)->type_name(type);
}

/// Makes the use of an option's old name an error that gives the new name.
void add_renamed(CLI::App& command, const std::string& old_name, const std::string& new_name);

/// Adds the flag --json, which prints the result as one line of JSON on standard output instead of
/// text.
void add_json_flag(CLI::App& command, bool& json);

/// Adds the option --set K=V.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides);

/// The arguments CONFIG and --set K=V.
struct ConfigFileArguments {
  std::string file;
  std::vector<std::string> overrides;

  /// Returns the option CONFIG, which is required.
  CLI::Option* add_to(CLI::App& command);
  /// Returns the parsed file without checking its keys. Throws ConfigError.
  Config tree() const { return load_config(file, overrides); }
};

/// Writes to standard output, without control characters. Does not throw if writing fails, so that
/// finished work is not lost; the program reports the failure at its end (output_fault).
void print_text(std::string_view text);

/// Prints lines. On a terminal, lines wider than the terminal are broken between words, and each
/// continuation line begins with `indent`. A file or pipe gets the lines unbroken, because scripts
/// read them.
void print_lines(std::string_view text, std::string_view indent = "    ");

/// Formats as fmt::format does, then calls print_text.
template <class... Arguments>
void print_formatted(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// JSON objects keep the order in which their members were added.
using Json = nlohmann::ordered_json;
/// Returns the JSON as one line; invalid UTF-8, which file names may contain, is replaced.
std::string json_text(const Json& json);
/// Prints one JSON object on its own line.
void print(const Json& json);

/// Prints a suggested next command to standard error as one line: "next: trainer run ...". Does
/// nothing if the program is quiet or standard output is a file or a pipe, which a script reads.
void suggest_next(std::string_view what);
template <class First, class... More>
void suggest_next(fmt::format_string<First, More...> format, First&& first, More&&... more) {
  suggest_next(fmt::format(format, std::forward<First>(first), std::forward<More>(more)...));
}

/// Flushes standard output. Returns why a write to it failed; nullopt if none did.
std::optional<std::string> output_fault();

/// Sets the end of the help text to examples, each a full command line.
void add_examples(CLI::App& command, const std::vector<std::string>& examples);

}  // namespace millrace::cli
