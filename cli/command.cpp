#include "millrace/cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "millrace/base/log.h"
#include "millrace/base/progress_bar.h"
#include "millrace/base/word_wrap.h"

namespace millrace::cli {
namespace {

constexpr std::array kCommands = {
    CommandSummary{"run", "Train a detector"},
    CommandSummary{"eval", "Evaluate a model on the validation split: COCO or LVIS metrics"},
    CommandSummary{"coco-eval", "Score detections against annotations: COCO or LVIS metrics"},
    CommandSummary{
        "predict",
        "Detect objects in images and videos: annotated pictures and a COCO results file"},
    CommandSummary{"report", "Write a page about one or several runs, or about a study"},
    CommandSummary{"sample", "Make the sample data set: images of shapes with exact annotations"},
    CommandSummary{"init", "Write a first configuration for a folder of images and labels"},
    CommandSummary{"import", "Convert labels of other tools to COCO's layout (docs/own-data.md)"},
    CommandSummary{
        "inspect",
        "Show what training sees on one page: batches with boxes and masks, photos, statistics"},
    CommandSummary{
        "doctor", "Check a data set and report its faults; exit code 1 if training would be wrong"},
    CommandSummary{"pack", "Pack the images and annotations of a split into a record store"},
    CommandSummary{"index", "Make a record store that refers to existing shards"},
    CommandSummary{"convert",
                   "Convert weights to another format (.safetensors, .pth, .npz) and other names"},
    CommandSummary{"export", "Export a trained model as an ONNX file with a certificate"},
    CommandSummary{"config",
                   "Print the resolved configuration with the origin of each value; for a "
                   "model.safetensors, its facts"},
    CommandSummary{
        "import-config",
        "Convert a recipe of detectron2 (.yaml) or MMDetection (.py) to a configuration"},
    CommandSummary{"list", "List every detector, callback, source and stage with its options"},
    CommandSummary{"bench", "Measure the parts of a training run"},
    CommandSummary{"serve", "Serve training batches to other processes and machines"},
    CommandSummary{"check-gpu",
                   "Show the GPU, its driver and libraries, and run the tests that need a GPU"},
    CommandSummary{"status",
                   "Show the state of a run: its ranks and data servers, also while they hang"},
    CommandSummary{"diff", "Show how two runs differ, and whether that affects results"},
    CommandSummary{"study",
                   "Train variants of a configuration with several seeds, and compare them"},
    CommandSummary{
        "completion",
        "Print a shell's completion script for commands, options, files and keys of --set"},
    CommandSummary{"man", "Print the manual page, for `man -l -`"}};

CLI::Validator numbers(const char* which, bool (*fit)(double)) {
  return {[=](const std::string& text) -> std::string {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && fit(value)) return {};
            return fmt::format("'{1}' is not a number {0}", which, text);
          },
          ""};
}

int first_fault = 0;  // errno of the first write to standard output that failed

void note_fault(bool failed) {
  if (failed && first_fault == 0) first_fault = errno;
}

}  // namespace

std::span<const CommandSummary> command_docs() { return kCommands; }

std::string doc_of(std::string_view command) {
  return std::ranges::find(kCommands, command, &CommandSummary::name)->doc;
}

CLI::Validator positive() {
  return numbers("> 0", [](double value) { return value > 0; });
}

CLI::Validator not_negative() {
  return numbers(">= 0", [](double value) { return value >= 0; });
}

void add_renamed(CLI::App& command, const std::string& old_name, const std::string& new_name) {
  const auto refuse = [=](const std::string&) {
    throw CLI::ValidationError(old_name, "was renamed to " + new_name);
  };
  command.add_option_function<std::string>(old_name, refuse)->group("");
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "print only one JSON object, on one line of standard output");
}

void add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  add_option(command, "--set", overrides, "K=V",
             "value of a configuration key, such as train.seed=7; may be repeated")
      ->allow_extra_args(false);
}

CLI::Option* ConfigFileArguments::add_to(CLI::App& command) {
  auto* config = command.add_option("CONFIG", file, "TOML file, such as configs/maskrcnn.toml");
  config->required();
  add_overrides(command, overrides);
  return config;
}

void print_text(std::string_view text) {
  const auto shown = without_controls(text);
  note_fault(std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size());
}

void print_lines(std::string_view text, std::string_view indent) {
  if (::isatty(STDOUT_FILENO) == 0) return print_text(text);
  print_text(wrapped(text, static_cast<std::size_t>(terminal_columns()), indent));
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
  return std::string("cannot write to standard output") +
         (first_fault != 0 ? std::string(": ") + std::strerror(first_fault) : "");
}

void add_examples(CLI::App& command, const std::vector<std::string>& examples) {
  command.footer(fmt::format("Examples:\n  {}", fmt::join(examples, "\n  ")));
}

}  // namespace millrace::cli
