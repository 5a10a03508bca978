// How many threads there are: of the maths (OpenMP) and of the flow graph (oneTBB).
#pragma once

#include <cstdint>
#include <memory>

namespace millrace {

/// Holds both limits while it lives; 0: all processors that this process may use. The flow graph's
/// workers sleep while enough batches are ready, so both may have all cores. Create before any
/// work.
class Threads {
 public:
  Threads(std::int64_t maths, std::int64_t flow);

 private:
  std::shared_ptr<void> limit_;
};

}  // namespace millrace
