// The last message of a process that cannot continue.
#pragma once

namespace millrace {

/// From now on an uncaught exception ends the process with its message and kFailed,
/// and not with the signal of std::terminate alone: one of a destructor, as libtorch's memory
/// throws when it is given back to a GPU that has met a fault. Idempotent.
void name_uncaught_exceptions();

}  // namespace millrace
