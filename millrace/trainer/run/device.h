// The device that a process computes on.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace millrace {

/// "cpu"; or "cuda", the GPU of the host's process `local_rank`, which becomes the calling thread's
/// current one. Throws ConfigError where there is none, saying what is missing.
at::Device open_device(const std::string& kind, std::int64_t local_rank);

/// Takes the memory of batches that are made from now on from where a device copies fast.
void make_batches_for(at::Device device);

}  // namespace millrace
