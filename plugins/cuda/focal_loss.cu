#include "millrace/plugins/cuda/focal_loss.h"
#include "millrace/plugins/cuda/launch.h"

namespace millrace::cuda {
namespace {

constexpr std::int64_t kShare = 16 * kThreads;  // losses that a block adds up

/// Returns the sum of each thread's `mine` in thread 0. The order of additions is fixed.
__device__ double block_sum(double mine) {
  __shared__ double shared[kThreads];
  shared[threadIdx.x] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  return shared[0];
}

template <typename T>
__global__ void add_shares(FocalTable<T> table, FocalRules rules, double* sums) {
  const auto count = table.rows * table.columns;
  const auto first = static_cast<std::int64_t>(blockIdx.x) * kShare;
  const auto last = first + kShare < count ? first + kShare : count;
  double sum = 0;
  for (auto i = first + threadIdx.x; i < last; i += kThreads) sum += table.value(i, rules);
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Adds the sums of all blocks. Runs as one block.
template <typename T>
__global__ void add_sums(const double* sums, std::int64_t count, T* loss) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = static_cast<T>(sum);
}

std::int64_t shares_of(std::int64_t count) { return (count + kShare - 1) / kShare; }

}  // namespace

std::size_t focal_scratch_bytes(std::int64_t count) {
  return static_cast<std::size_t>(shares_of(count)) * sizeof(double);
}

template <typename T>
void focal_loss(const FocalTable<T>& table, const FocalRules& rules, void* scratch, T* loss,
                Stream stream) {
  auto* const sums = static_cast<double*>(scratch);
  const auto shares = shares_of(table.rows * table.columns);
  if (shares > 0) {
    add_shares<T><<<static_cast<unsigned>(shares), kThreads, 0, stream>>>(table, rules, sums);
    check_launch("focal_loss: add_shares");
  }
  add_sums<T><<<1, kThreads, 0, stream>>>(sums, shares, loss);
  check_launch("focal_loss: add_sums");
}

template <typename T>
void focal_loss_backward(const FocalTable<T>& table, const FocalRules& rules, const T* factor,
                         T* gradient, Stream stream) {
  launch_each(table.rows * table.columns, "focal_loss_backward", stream,
              [=] __device__(std::int64_t i) { gradient[i] = *factor * table.slope(i, rules); });
}

#define MILLRACE_FOCAL_LOSS(T)                                                                \
  template void focal_loss<T>(const FocalTable<T>&, const FocalRules&, void*, T*, Stream);    \
  template void focal_loss_backward<T>(const FocalTable<T>&, const FocalRules&, const T*, T*, \
                                       Stream);
MILLRACE_FOCAL_LOSS(float)
MILLRACE_FOCAL_LOSS(double)
#undef MILLRACE_FOCAL_LOSS

}  // namespace millrace::cuda
