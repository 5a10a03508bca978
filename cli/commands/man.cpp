// trainer man: the manual page.
#include "millrace/cli/command.h"
#include "millrace/cli/describe/man_page.h"
#include "millrace/cli/program.h"

namespace millrace::cli {
namespace {

struct ManArguments {
  const CLI::App* program = nullptr;
};

int man(const ManArguments& arguments) {
  print_text(man_page(describe_commands(*arguments.program), MILLRACE_VERSION, revision_day()));
  suggest_next("trainer man | man -l -");
  return kDone;
}

}  // namespace

void add_man(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "man", man);
  arguments.program = &app;
  add_examples(command, {"trainer man | man -l -"});
}

}  // namespace millrace::cli
