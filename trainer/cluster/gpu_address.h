// The GPU that a process of a host uses, and its PCI address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

/// Returns which of the `visible` GPUs the process `local_rank` of a host uses: the GPU of the same
/// number, or the only visible one if a launcher gives each process its own (Slurm's
/// --gpus-per-task). nullopt if there are too few.
std::optional<std::int64_t> gpu_of_rank(std::int64_t local_rank, std::int64_t visible);

/// Returns the PCI address of that GPU ("0000:3b:00.0"), as reported by NVIDIA's driver, which
/// respects CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER. Empty if there is no driver or no such GPU.
std::string gpu_address(std::int64_t local_rank);

}  // namespace millrace
