// The eight batches of bench_serving, which exceed the last-level cache, and the times at which
// they are made or taken.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/image/buffer_pool.h"

namespace millrace::bench {

/// Makes batches of 4 x 800 x 1216 x 3 bytes with boxes.
std::vector<Batch> make_batches(const BufferPool& pool);

/// Equidistant times, `rate` per second.
class Pace {
 public:
  /// The first time is one period from now. `rate` 0 = all times are in the past.
  explicit Pace(double rate) : period_(rate > 0 ? 1 / rate : 0) {}
  /// Returns the time of number k.
  Clock::time_point at(std::int64_t k) const {
    return start_ + std::chrono::round<Clock::duration>(period_ * static_cast<double>(k));
  }

 private:
  const std::chrono::duration<double> period_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace millrace::bench
