// A stack of their own for signal handlers.
#pragma once

namespace millrace {

/// Gives this thread a stack for handlers with SA_ONSTACK, unless it has one; it keeps it until it
/// ends. Handlers need one where a stack has run over, and where the stack pointer is used for
/// something else: matrix products of oneDNN before 3.11.2 let it point into the heap, which the
/// kernel would write a handler's frame over (oneDNN issue 4845).
void give_signal_stack();

}  // namespace millrace
