// What the subcommands share. Each lives in a file of its own: it declares its arguments, and says
// what is to be done once all of them are read.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/process/exit_codes.h"

namespace millrace::cli {

/// What the command line asks for; main runs it and exits with what it returns.
struct Action {
  std::function<int()> work;
  /// The stop signals, which main holds back from its first line on, are released by `work` once it
  /// handles them. Else they end the process as the system has it, from before `work` on.
  bool handles_signals = false;

  Action& operator=(std::function<int()> what) {
    work = std::move(what);
    return *this;
  }
};

void add_run(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_coco_eval(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_sample(CLI::App& app, Action& action);
void add_config(CLI::App& app, Action& action);
void add_pack(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);

/// Checks of numbers, in plain words.
CLI::Validator positive();
CLI::Validator not_negative();

/// The flag --json: results as one JSON object in one line of standard output, instead of text.
void add_json_flag(CLI::App& command, bool& json);

/// Writes to standard output. Where that does not take it, nothing is thrown: work that is done is
/// not lost for it, and the program says so at its end (output_fault).
void print_text(std::string_view text);

/// JSON objects keep the order in which their members were added.
using Json = nlohmann::ordered_json;
/// One object in a line of its own.
void print(const Json& json);

/// Flushes standard output. Why it could not take all that was written to it; nothing where it has
/// taken it.
std::optional<std::string> output_fault();

/// Help text that ends in examples, each a full command line.
void add_examples(CLI::App& command, const std::vector<std::string>& examples);

}  // namespace millrace::cli
