// Use of this machine's GPUs, as NVIDIA's driver reports it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace millrace {

struct GpuUse {
  double busy = 0;                // share of the last sampling period in which a kernel ran, 0 .. 1
  std::int64_t memory_bytes = 0;  // of all processes
};

/// Asks the driver's library, libnvidia-ml.so.1, if there is one. For one thread at a time.
class GpuMeter {
 public:
  GpuMeter();
  ~GpuMeter();

  /// By GPU, in the driver's order; empty without a driver, a GPU or an answer.
  std::vector<GpuUse> read() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace millrace
