// The subcommands of `trainer bench`.
#pragma once

#include "millrace/cli/command.h"

namespace millrace::cli {

void add_bench_dataflow(CLI::App& bench, Action& action);
void add_bench_eval(CLI::App& bench, Action& action);
void add_bench_model(CLI::App& bench, Action& action);

}  // namespace millrace::cli
