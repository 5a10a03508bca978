// The one place that decides how many threads there are: of the maths (OpenMP) and of the flow
// graph (oneTBB).
#pragma once

#include <cstdint>
#include <memory>

namespace millrace {

/// Holds both limits for as long as it lives; 0: all processors that this process may use. The flow
/// graph's workers sleep whenever enough batches are ready, so both may have all cores. Owned by
/// whoever runs a command; create it before any work.
class Threads {
 public:
  Threads(std::int64_t maths, std::int64_t flow);
  ~Threads();

 private:
  struct Limit;
  std::unique_ptr<Limit> limit_;
};

}  // namespace millrace
