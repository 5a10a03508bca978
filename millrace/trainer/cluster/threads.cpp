#include "millrace/trainer/cluster/threads.h"

#include <ATen/Parallel.h>
#include <tbb/global_control.h>

#include "millrace/trainer/cluster/processors.h"

namespace millrace {

Threads::Threads(std::int64_t maths, std::int64_t flow) {
  const auto cores = static_cast<std::int64_t>(allowed_processor_count());
  at::set_num_threads(static_cast<int>(maths > 0 ? maths : cores));
  // One more, since the training thread counts and a one-core machine needs a worker.
  limit_ = std::make_shared<tbb::global_control>(
      tbb::global_control::max_allowed_parallelism,
      static_cast<std::size_t>((flow > 0 ? flow : cores) + 1));
}

}  // namespace millrace
