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
    CommandSummary{"eval", "Detect over the validation split and print the COCO or LVIS figures"},
    CommandSummary{"coco-eval", "Score detections against annotations: the COCO or LVIS figures"},
    CommandSummary{
        "predict",
        "Detect in image and video files: pictures with masks and names, and a COCO results file"},
    CommandSummary{
        "report", "Write one page of one or several runs, or of a study, to draw conclusions from"},
    CommandSummary{"sample", "Make the sample data set: pictures of shapes with exact annotations"},
    CommandSummary{"init", "Write a first configuration for a folder of photos and labels"},
    CommandSummary{"import", "Labels of other tools into COCO's layout (docs/own-data.md)"},
    CommandSummary{
        "inspect",
        "Look at what training sees: batches with boxes and masks, photos, figures, on one page"},
    CommandSummary{
        "doctor",
        "Check a data set, say what is wrong with it; exit code 1: training would be wrong"},
    CommandSummary{"pack", "Put the images and annotations of a split into a record store"},
    CommandSummary{"index", "Make a record store of shards, which stay where they are"},
    CommandSummary{"convert",
                   "Weights into another format (.safetensors, .pth, .npz) and other names"},
    CommandSummary{"export", "A trained model as an ONNX file, with a certificate"},
    CommandSummary{"config",
                   "Print the resolved configuration and where each value came from; of a "
                   "model.safetensors, what it is"},
    CommandSummary{"import-config",
                   "Turn a recipe of detectron2 (.yaml) or MMDetection (.py) into a configuration"},
    CommandSummary{"list", "Show every detector, callback and stage with its options"},
    CommandSummary{"bench", "Measure the parts of a training run"},
    CommandSummary{"serve", "Make training batches for other processes and machines"},
    CommandSummary{"check-gpu",
                   "Show the GPU, its driver and libraries, and run the tests that need a GPU"},
    CommandSummary{"status", "Tell how a run is: its ranks and data servers, also while they hang"},
    CommandSummary{"diff", "Tell what differs between two runs, and whether it decides results"},
    CommandSummary{"study",
                   "Train variants of a configuration with several seeds, and say what differs"},
    CommandSummary{
        "completion",
        "Print what makes a shell complete commands, options, files and keys after --set"},
    CommandSummary{"man", "Print the manual page, for `man -l -`"}};

CLI::Validator numbers(const char* which, bool (*fit)(double)) {
  return {[=](const std::string& text) -> std::string {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && fit(value)) return {};
            return fmt::format("takes numbers {}, not '{}'", which, text);
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
  return numbers("above 0", [](double value) { return value > 0; });
}

CLI::Validator not_negative() {
  return numbers("from 0 on", [](double value) { return value >= 0; });
}

void add_renamed(CLI::App& command, const std::string& old_name, const std::string& new_name) {
  const auto refuse = [=](const std::string&) {
    throw CLI::ValidationError(old_name, "is now called " + new_name);
  };
  command.add_option_function<std::string>(old_name, refuse)->group("");
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("--json", json,
                   "print one JSON object in one line, and nothing else, on standard output");
}

void add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  add_option(command, "--set", overrides, "K=V",
             "set a key of the configuration, such as train.seed=7; may be repeated")
      ->allow_extra_args(false);
}

CLI::Option* ConfigFileArguments::add_to(CLI::App& command) {
  auto* config = command.add_option("CONFIG", file, "the TOML file, such as configs/maskrcnn.toml");
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
  return std::string("standard output cannot be written") +
         (first_fault != 0 ? std::string(": ") + std::strerror(first_fault) : "");
}

void add_examples(CLI::App& command, const std::vector<std::string>& examples) {
  command.footer(fmt::format("Examples:\n  {}", fmt::join(examples, "\n  ")));
}

}  // namespace millrace::cli
