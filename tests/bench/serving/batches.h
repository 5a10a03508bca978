// What bench_serving sends: eight ready batches, more than a last-level cache holds, and when.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/image/buffer_pool.h"

namespace millrace::bench {

/// Batches of 4 x 800 x 1216 x 3 bytes and their boxes.
std::vector<Batch> make_batches(const BufferPool& pool);

/// Moments in a row, `rate` a second.
class Pace {
 public:
  /// The first is one period from now. `rate` 0: all are in the past.
  explicit Pace(double rate) : period_(rate > 0 ? 1 / rate : 0) {}
  /// The moment of number k.
  Clock::time_point at(std::int64_t k) const {
    return start_ + std::chrono::round<Clock::duration>(period_ * static_cast<double>(k));
  }

 private:
  const std::chrono::duration<double> period_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace millrace::bench
