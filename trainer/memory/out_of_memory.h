// A step that does not fit into memory.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// What to do if a step does not fit into memory.
inline constexpr auto kLessMemory =
    "raise train.passes (parts of a batch, one after the other), or lower data.batch_size "
    "(optimizer.accumulate = N makes a step of N batches) or data.short_side and data.max_side";

/// Whether an allocation failed, ours or libtorch's.
bool is_out_of_memory(const std::exception& problem);

/// The message for a step over these batches.
std::string out_of_memory_text(const std::vector<Batch>& batches);

}  // namespace millrace
