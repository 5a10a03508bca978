// What the subcommands share. Each lives in a file of its own: it declares its arguments and sets
// the action that runs once all of them are read.
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
#include <variant>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/process/exit_codes.h"

namespace millrace::cli {

/// What the command line asks for; `work` returns the exit code.
struct Action {
  std::function<int()> work;
  /// Whether `work` releases the stop signals, which main holds back from its first line on, once
  /// it handles them. Otherwise they are released before `work` and kill the process as usual.
  bool handles_signals = false;
};

/// What a command does, as --help of the whole program has it: both programs know it, although
/// `trainer` has only some of the commands.
struct CommandSummary {
  const char *name, *doc;
};

/// In the order of --help.
std::span<const CommandSummary> command_docs();

/// REQUIRES: there is such a command.
std::string doc_of(std::string_view command);

/// Declares a subcommand that calls `work` with its arguments. Returns it, to be given options, and
/// the arguments, for these to be read into.
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

/// Adds a top-level command.
template <class Arguments>
std::pair<CLI::App&, Arguments&> add_subcommand(CLI::App& app, Action& action,
                                                const std::string& name,
                                                int (*work)(const Arguments&),
                                                bool handles_signals = false) {
  return add_subcommand(app, action, name, doc_of(name), work, handles_signals);
}

/// Declares a subcommand.
using AddCommand = void(CLI::App& app, Action& action);
AddCommand add_run, add_eval, add_coco_eval, add_predict, add_sample, add_config, add_pack,
    add_convert, add_doctor, add_export, add_import, add_import_config, add_index, add_init,
    add_inspect, add_list, add_bench, add_serve, add_check_gpu, add_report, add_status, add_diff,
    add_study, add_completion, add_man;
// Of `bench`.
AddCommand add_bench_eval, add_bench_model;

/// Checks of numbers, in plain words.
CLI::Validator positive();
CLI::Validator not_negative();

/// Adds an option with a value that --help calls `type`, "FILE".
template <class T>
CLI::Option* add_option(CLI::App& command, const std::string& names, T& value,
                        const std::string& type, const std::string& doc) {
  return command.add_option(names, value, doc)->type_name(type);
}

/// Makes the old name of an option an error that names the new one.
void add_renamed(CLI::App& command, const std::string& old_name, const std::string& new_name);

/// The flag --json: results as one JSON object in one line of standard output, instead of text.
void add_json_flag(CLI::App& command, bool& json);

/// The value at a path of a table, "rpn.nms_thresh", if it is a T; else nullptr.
template <class T>
const T* value_at(const Config& table, std::string_view path) {
  const auto* found = table.find_path(path);
  return found ? std::get_if<T>(&found->data) : nullptr;
}

/// The option --set K=V.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides);

/// The arguments CONFIG and --set K=V.
struct ConfigFileArguments {
  std::string file;
  std::vector<std::string> overrides;

  /// Returns CONFIG, which is required.
  CLI::Option* add_to(CLI::App& command);
  /// The file as it is, none of its keys checked. Throws ConfigError.
  Config tree() const { return load_config(file, overrides); }
};

/// Writes to standard output, without control characters. A failure throws nothing, so that no
/// finished work is lost; the program reports it at its end (output_fault).
void print_text(std::string_view text);

/// Prints lines: on a terminal broken between words where they are longer than it is wide, what is
/// broken off behind `indent`; into a file or a pipe as they are, for a script reads them.
void print_lines(std::string_view text, std::string_view indent = "    ");

/// Formats as fmt::format does, then prints by print_text.
template <class... Arguments>
void print_formatted(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// JSON objects keep the order in which their members were added.
using Json = nlohmann::ordered_json;
/// The text of one line; what is not UTF-8, as names of files may be, is replaced.
std::string json_text(const Json& json);
/// Prints one object on a line of its own.
void print(const Json& json);

/// Says in one line of standard error what to do next: "next: trainer run ...". Says nothing where
/// the program is quiet, nor where standard output goes into a file or a pipe: a script reads it.
void suggest_next(std::string_view what);
template <class First, class... More>
void suggest_next(fmt::format_string<First, More...> format, First&& first, More&&... more) {
  suggest_next(fmt::format(format, std::forward<First>(first), std::forward<More>(more)...));
}

/// Flushes standard output and returns why something written to it failed, if anything did.
std::optional<std::string> output_fault();

/// Help text that ends in examples, each a full command line.
void add_examples(CLI::App& command, const std::vector<std::string>& examples);

}  // namespace millrace::cli
