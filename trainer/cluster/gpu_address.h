// Which GPU a process of a host uses, and where that sits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

/// The GPU of the host's process `local_rank`, of the `visible` ones that it sees: that of its
/// number, or the only one, where a launcher shows each process its own (Slurm's --gpus-per-task).
/// Nothing if there are too few.
std::optional<std::int64_t> gpu_of_rank(std::int64_t local_rank, std::int64_t visible);

/// Its PCI address ("0000:3b:00.0") as NVIDIA's driver says, which follows CUDA_VISIBLE_DEVICES and
/// CUDA_DEVICE_ORDER. Empty without a driver or such a GPU.
std::string gpu_address(std::int64_t local_rank);

}  // namespace millrace
