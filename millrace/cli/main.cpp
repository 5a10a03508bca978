// trainer: the command line of Millrace. What needs no tensors is done here and now, without the
// quarter of a second and the 170 MB that libtorch takes to start; everything else by
// trainer-torch.
#include "millrace/base/process/signals.h"
#include "millrace/cli/hand_over.h"
#include "millrace/cli/program.h"

int main(int argc, char** argv) {
  using namespace millrace::cli;
  millrace::hold_stop_signals();
  millrace::survive_file_size_limit();
  if (const auto exit_code = run_if_known(argc, argv, {add_coco_eval})) return *exit_code;
  return hand_over(argv);
}
