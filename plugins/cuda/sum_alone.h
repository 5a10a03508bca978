// NCCL with one rank, to see that it is there and works.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace millrace::cuda {

/// "2.27.7"; "none" if the plug-in is built without NCCL.
std::string nccl_version();

/// Sums `values`, `count` floats of the GPU, over a communicator of this GPU alone, and waits for
/// it. Returns the library's name and version. Throws Error.
std::string sum_alone(float* values, std::size_t count, int gpu, cudaStream_t stream);

}  // namespace millrace::cuda
