// trainer: the command line of Millrace. What needs no tensors runs here, without the quarter of a
// second and the 170 MB that libtorch takes to start; everything else runs in trainer-torch.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string_view>

#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/cli/known_answers.h"
#include "millrace/cli/libtorch.h"
#include "millrace/cli/program.h"

using namespace millrace;

namespace {

/// What the program without a libtorch says to a command that needs one.
int without_libtorch(const std::exception& why, bool asks_for_version) {
  if (!asks_for_version) {
    print_to_stderr(fmt::format("trainer: error: {}\n", why.what()));
    return kFailed;
  }
  cli::print_text(fmt::format("trainer " MILLRACE_VERSION "\nno libtorch: {}\n", why.what()));
  return cli::output_fault() ? kFailed : kDone;
}

/// Of `bench`, what needs no tensors.
void add_data_bench(CLI::App& app, cli::Action& action) {
  auto* command = app.add_subcommand("bench");
  command->require_subcommand(1);
  cli::add_bench_dataflow(*command, action);
}

}  // namespace

int main(int argc, char** argv) {
  hold_stop_signals();
  survive_file_size_limit();
  if (const auto exit_code =
          cli::run(argc, argv,
                   {cli::add_coco_eval, cli::add_diff, cli::add_import, cli::add_import_config,
                    cli::add_report, cli::add_status, cli::add_study, add_data_bench},
                   /*all=*/false))
    return *exit_code;
  if (const auto exit_code = cli::answer_what_is_known(argc, argv)) return *exit_code;
  // OpenMP's threads spin only briefly at barriers (docs/decisions/0005); its runtime reads that
  // from the environment when it is loaded.
  if (!std::getenv("OMP_WAIT_POLICY") && !std::getenv("GOMP_SPINCOUNT"))
    setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/1);
  try {
    cli::open_libtorch_to_next_program();
  } catch (const std::exception& problem) {  // also of a folder that may not be looked into
    return without_libtorch(problem, argc == 2 && argv[1] == std::string_view("--version"));
  }
  std::error_code unknown;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path() / "trainer-torch";
  execv(beside.c_str(), argv);  // held signals stay held
  print_to_stderr(fmt::format(
      "trainer: error: cannot start {}: {}; it belongs beside trainer: build or install both\n",
      beside.string(), std::strerror(errno)));
  return kFailed;
}
