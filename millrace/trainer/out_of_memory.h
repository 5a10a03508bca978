// An allocation that failed in a training step, explained.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// What to do where a step does not fit into memory.
inline constexpr auto kLessMemory =
    "lower data.batch_size (optimizer.accumulate = N makes a step of N batches), or "
    "data.short_side and data.max_side";

/// Whether an allocation failed, of ours or of libtorch's.
bool is_out_of_memory(const std::exception& problem);

/// What to say of that in a step over these batches.
std::string out_of_memory_text(const std::vector<Batch>& batches);

}  // namespace millrace
