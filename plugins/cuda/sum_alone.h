// Tests NCCL with a single rank.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace millrace::cuda {

/// Returns a version such as "2.27.7"; "none" if the plug-in is built without NCCL.
std::string nccl_version();

/// Sums `values`, `count` floats in GPU memory, over a communicator of this GPU only, and waits for
/// the result. Returns the library's name and version. Throws Error if NCCL fails or is not built
/// in.
std::string sum_alone(float* values, std::size_t count, int gpu, cudaStream_t stream);

}  // namespace millrace::cuda
