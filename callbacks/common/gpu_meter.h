// Utilization and memory of this machine's GPUs, as reported by NVIDIA's driver.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace {

struct GpuUse {
  double busy = 0;                // share of the last sampling period in which a kernel ran, 0 to 1
  std::int64_t memory_bytes = 0;  // memory used by all processes
};

/// Returns the use by GPU, in the driver's order; empty if there is no driver or GPU, or a query
/// fails. Loads the driver's library libnvidia-ml.so.1 for the rest of the process. Thread-safe.
std::vector<GpuUse> gpu_use();

}  // namespace millrace
