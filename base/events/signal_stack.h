// A separate stack for signal handlers.
#pragma once

namespace millrace {

/// Gives this thread a stack for handlers with SA_ONSTACK, until the thread ends, unless it already
/// has one. Handlers need it after a stack overflow, and when code uses the stack pointer for
/// something else: oneDNN's matrix products before 3.11.2 let it point into the heap, where the
/// kernel would overwrite data with the handler's frame (oneDNN issue 4845).
void give_signal_stack();

}  // namespace millrace
