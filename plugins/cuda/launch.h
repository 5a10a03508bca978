// Helpers that launch kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace millrace::cuda {

constexpr int kThreads = 256;  // per block, unless a kernel overrides it
constexpr int kWarp = 32;

/// Returns the number of blocks of `threads` threads for `count` elements, up to 65,536; kernels
/// loop over the remaining elements with a grid stride.
inline unsigned blocks_for(std::int64_t count, int threads = kThreads) {
  constexpr std::int64_t kMost = 1 << 16;
  const auto blocks = (count + threads - 1) / threads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < kMost ? blocks : kMost);
}

/// Throws std::runtime_error unless `status` is cudaSuccess.
inline void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}

/// Throws std::runtime_error if the last launch failed.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

/// Calls `body(i)` for every i below `count`, in a grid-stride loop.
template <typename F>
__global__ void each_index(std::int64_t count, F body) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    body(i);
}

/// Launches a kernel that calls `body(i)`, a __device__ lambda, for every i below `count`. `name`
/// identifies the kernel in errors.
template <typename F>
void launch_each(std::int64_t count, const char* name, cudaStream_t stream, F body,
                 int threads = kThreads) {
  if (count == 0) return;
  each_index<<<blocks_for(count, threads), threads, 0, stream>>>(count, body);
  check_launch(name);
}

/// Compacts in thread order: returns an index from `size` on if the calling thread offers an
/// element, else -1, and increases `size` by the number of offers. All threads of the block must
/// call it; a block has up to 1024 threads. `counts` is shared memory for 32 ints.
__device__ inline int place_in_order(bool offers, int& size, int* counts) {
  const unsigned lanes = __ballot_sync(~0U, offers);
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane == 0) counts[warp] = __popc(lanes);
  __syncthreads();
  int before = size, total = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) {
    if (w < warp) before += counts[w];
    total += counts[w];
  }
  size += total;
  __syncthreads();
  return offers ? before + __popc(lanes & ((1U << lane) - 1)) : -1;
}

}  // namespace millrace::cuda
