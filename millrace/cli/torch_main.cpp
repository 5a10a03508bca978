// trainer-torch: every subcommand. `trainer` starts it.
#include "millrace/base/process/stop_signals.h"
#include "millrace/cli/program.h"

int main(int argc, char** argv) {
  using namespace millrace::cli;
  millrace::hold_stop_signals();
  millrace::survive_file_size_limit();
  return *run(argc, argv,
              {add_run, add_eval, add_coco_eval, add_predict, add_sample, add_pack, add_convert,
               add_doctor, add_config, add_list, add_bench, add_serve},
              /*all=*/true);
}
