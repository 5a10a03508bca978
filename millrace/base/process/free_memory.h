// How much memory a process may still take.
#pragma once

#include <optional>

namespace millrace {

/// Bytes that can be allocated before the system swaps or ends a process: MemAvailable, or less
/// where a control group of this process (a container, a job of a cluster) has a limit. Nothing
/// where the system does not tell.
std::optional<double> free_memory();

}  // namespace millrace
