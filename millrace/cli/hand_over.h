// From `trainer` to the program beside it that has libtorch.
#pragma once

namespace millrace::cli {

/// Goes on as `trainer-torch`, in this process and with this command line; comes back only where
/// that cannot be started, with the exit code. Signals that are held back stay so. Threads of the
/// maths will spin only briefly at OpenMP's barriers (docs/decisions/0005): the runtime reads that
/// from the environment when it is loaded.
int hand_over(char** argv);

}  // namespace millrace::cli
