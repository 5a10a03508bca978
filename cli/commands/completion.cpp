// trainer completion: prints the script by which a shell completes this program's commands,
// options, files and configuration keys.
#include "millrace/cli/describe/completion.h"

#include <set>

#include "millrace/cli/command.h"
#include "millrace/cli/describe/config_tables.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/callback.h"

namespace millrace::cli {
namespace {

struct CompletionArguments {
  const CLI::App* program = nullptr;
  std::string shell;
};

void add_words(std::set<std::string>& words, const std::string& table,
               const std::vector<OptionHelp>& options) {
  for (const auto& option : options) {
    const auto key = table + (table.empty() ? "" : ".") + option.name + "=";
    words.insert(key);
    if (option.type == OptionHelp::Type::boolean)
      words.insert({key + "false", key + "true"});
    else if (option.type == OptionHelp::Type::text)
      for (const auto& choice : option.choices) words.insert(key + choice);
  }
}

/// Returns the completions for --set, sorted: every key of a configuration ("train.seed="),
/// including the keys of all registered components; a key with a fixed set of values also with each
/// value ("optimizer.type=sgd").
std::vector<std::string> setting_words() {
  std::set<std::string> words;
  std::vector<OptionHelp> switches;  // options of every callback
  for (const auto& table : config_tables()) {
    if (table.name == "callbacks.NAME")
      switches = table.options;
    else if (!table.name.starts_with("["))  // lists can only be written in a file
      add_words(words, table.name, table.options);
  }
  for (const auto& [name, entry] : detectors().entries()) {
    words.insert("model.type=" + name);
    add_words(words, "model", entry.help());
  }
  for (const auto& [name, entry] : callbacks().entries()) {
    add_words(words, "callbacks." + name, switches);
    add_words(words, "callbacks." + name, entry.help());
  }
  return {words.begin(), words.end()};
}

int completion(const CompletionArguments& arguments) {
  const auto commands = describe_commands(*arguments.program);
  const auto& make = arguments.shell == "bash"  ? bash_completion
                     : arguments.shell == "zsh" ? zsh_completion
                                                : fish_completion;
  print_text(make(commands, setting_words()));
  suggest_next(arguments.shell == "fish"
                   ? "trainer completion fish >~/.config/fish/completions/trainer.fish"
                   : "in ~/." + arguments.shell + "rc: source <(trainer completion " +
                         arguments.shell + ")");
  return kDone;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "completion", completion);
  arguments.program = &app;
  command.add_option("SHELL", arguments.shell, "shell to print the script for")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_examples(command, {"trainer completion bash >>~/.bash_completion",
                         "trainer completion zsh >~/.zfunc/_trainer",
                         "trainer completion fish >~/.config/fish/completions/trainer.fish"});
}

}  // namespace millrace::cli
