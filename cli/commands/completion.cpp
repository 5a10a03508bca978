// trainer completion: the script by which a shell completes this program's commands, options, files
// and configuration keys.
#include "millrace/cli/describe/completion.h"

#include "millrace/cli/command.h"
#include "millrace/cli/describe/setting_words.h"

namespace millrace::cli {
namespace {

struct CompletionArguments {
  const CLI::App* program = nullptr;
  std::string shell;
};

int completion(const CompletionArguments& arguments) {
  const auto commands = describe_commands(*arguments.program);
  const auto make = arguments.shell == "bash"  ? bash_completion
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
  command.add_option("SHELL", arguments.shell, "whose script")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_examples(command, {"trainer completion bash >>~/.bash_completion",
                         "trainer completion zsh >~/.zfunc/_trainer",
                         "trainer completion fish >~/.config/fish/completions/trainer.fish"});
}

}  // namespace millrace::cli
