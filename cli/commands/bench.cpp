// trainer bench: measure the parts, each beside its physical floor.
#include "millrace/cli/command.h"

namespace millrace::cli {

void add_bench(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("bench", doc_of("bench"));
  command->require_subcommand(1);
  add_bench_dataflow(*command, action);
  add_bench_eval(*command, action);
  add_bench_model(*command, action);
  add_examples(*command, {"trainer bench dataflow configs/maskrcnn.toml --seconds 10",
                          "trainer bench model configs/maskrcnn.toml --steps 20",
                          "trainer bench eval --images 500"});
}

}  // namespace millrace::cli
