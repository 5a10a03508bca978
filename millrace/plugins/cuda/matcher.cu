#include "millrace/plugins/cuda/launch.h"
#include "millrace/plugins/cuda/matcher.h"

namespace millrace::cuda {
namespace {

/// A block a truth. The largest of floats is the same in any order.
__global__ void find_highest(const float* truths, const float* boxes, std::int64_t box_count,
                             float offset, float* highest) {
  __shared__ float shared[kThreads];
  const auto truth = box_at(truths, blockIdx.x);
  float best = 0;
  for (std::int64_t i = threadIdx.x; i < box_count; i += kThreads)
    best = fmaxf(best, iou(truth, box_at(boxes, i), offset));
  shared[threadIdx.x] = best;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half)
      shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) highest[blockIdx.x] = shared[0];
}

__global__ void match_all(const float* truths, std::int64_t truth_count, const float* boxes,
                          std::int64_t box_count, MatchRules rules, const float* highest,
                          std::int64_t* truth, std::int8_t* label) {
  each_index(box_count, [&](std::int64_t i) {
    match_box(truths, truth_count, box_at(boxes, i), highest, rules, truth[i], label[i]);
  });
}

}  // namespace

void match(const float* truths, std::int64_t truth_count, const float* boxes,
           std::int64_t box_count, const MatchRules& rules, float* highest, std::int64_t* truth,
           std::int8_t* label, Stream stream) {
  if (box_count == 0) return;
  if (rules.low_quality && truth_count > 0) {
    find_highest<<<static_cast<unsigned>(truth_count), kThreads, 0, stream>>>(
        truths, boxes, box_count, rules.offset, highest);
    check_launch("match: find_highest");
  }
  match_all<<<blocks_for(box_count), kThreads, 0, stream>>>(truths, truth_count, boxes, box_count,
                                                            rules, highest, truth, label);
  check_launch("match");
}

}  // namespace millrace::cuda
