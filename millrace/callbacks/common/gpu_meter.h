// What NVIDIA's driver says of this machine's GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace millrace {

struct GpuUse {
  double busy = 0;  // share of the driver's last sampling period in which a kernel ran, 0 .. 1
  std::int64_t memory_bytes = 0;  // taken, by whatever process
};

/// Asks the driver's own library, libnvidia-ml.so.1, which is opened where there is one. For one
/// thread at a time.
class GpuMeter {
 public:
  GpuMeter();
  ~GpuMeter();

  /// One a GPU, in the driver's order; empty where there is no driver, no GPU or no answer.
  std::vector<GpuUse> read() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace millrace
