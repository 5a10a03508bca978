// The error message of a process that ends with an uncaught exception.
#pragma once

namespace millrace {

/// From now on, an uncaught exception ends the process with its message and kFailed, instead of
/// only the signal of std::terminate. This includes exceptions of destructors, such as libtorch's
/// when it frees memory of a GPU after a fault. Idempotent.
void report_uncaught_exceptions();

}  // namespace millrace
