// What headers of kernels need to be read by a host compiler too, so that their arithmetic is
// tested without a GPU.
#pragma once

#ifdef __CUDACC__
#define MILLRACE_HOST_DEVICE __host__ __device__
#else
#define MILLRACE_HOST_DEVICE
#endif

struct CUstream_st;

namespace millrace::cuda {

using Stream = CUstream_st*;  // cudaStream_t

}  // namespace millrace::cuda
