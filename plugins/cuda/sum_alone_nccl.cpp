#include <fmt/format.h>
#include <nccl.h>

#include <memory>

#include "millrace/base/errors.h"
#include "millrace/plugins/cuda/sum_alone.h"

namespace millrace::cuda {
namespace {

void check_nccl(ncclResult_t status, const char* what) {
  if (status != ncclSuccess)
    throw Error(fmt::format("NCCL: {}: {}", what, ncclGetErrorString(status)));
}

}  // namespace

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "cannot read its version");
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string sum_alone(float* values, std::size_t count, int gpu, cudaStream_t stream) {
  ncclComm_t communicator = nullptr;
  check_nccl(ncclCommInitAll(&communicator, 1, &gpu), "cannot create a communicator for one GPU");
  const std::unique_ptr<ncclComm, ncclResult_t (*)(ncclComm_t)> owner(communicator,
                                                                      ncclCommDestroy);
  check_nccl(ncclAllReduce(values, values, count, ncclFloat, ncclSum, communicator, stream),
             "cannot all-reduce on one GPU");
  if (const auto status = cudaStreamSynchronize(stream); status != cudaSuccess)
    throw Error(fmt::format("NCCL: cannot all-reduce on one GPU: {}", cudaGetErrorString(status)));
  return "NCCL " + nccl_version();
}

}  // namespace millrace::cuda
