// Definitions that let a host compiler read the kernels' headers, so that their arithmetic is
// tested without a GPU.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MILLRACE_HOST_DEVICE __host__ __device__
#else
#define MILLRACE_HOST_DEVICE
#endif

struct CUstream_st;

namespace millrace::cuda {

using Stream = CUstream_st*;  // the same type as cudaStream_t

/// V values that a thread reads and writes together.
template <typename T, int V>
struct alignas(sizeof(T) * V) Pack {
  T values[V];
};

/// Returns true if the address is aligned for packs.
template <typename T, int V>
bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignof(Pack<T, V>) == 0;
}

}  // namespace millrace::cuda
