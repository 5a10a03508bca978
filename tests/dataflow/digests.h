// Batches as hashes, to compare flows by.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/dataflow.h"

namespace millrace::testing {

/// The digests of the next `count` batches.
inline std::vector<std::uint64_t> digests(DataFlow<Batch>& flow, int count) {
  std::vector<std::uint64_t> result;
  for (; count > 0; --count) result.push_back(digest(flow.next()->value));
  return result;
}

}  // namespace millrace::testing
