#include "millrace/plugins/cuda/boxes.h"

#include "millrace/plugins/cuda/launch.h"

namespace millrace::cuda {
namespace {

/// One block per truth. The largest of floats is the same in any order.
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

__global__ void decode_all(ChosenAnchors chosen, BoxDecoding coding, float min_side, float* boxes,
                           std::uint8_t* valid) {
  each_index(chosen.count,
             [&](std::int64_t i) { decode_chosen(chosen, coding, min_side, i, boxes, valid); });
}

using Word = unsigned long long;
constexpr int kBits = 64;

std::int64_t words_for(std::int64_t most) { return (most + kBits - 1) / kBits; }

/// overlaps[i][w] gets a bit for each worse box of the group that box i overlaps. blockIdx: word,
/// 64 rows, group.
__global__ void find_overlaps(const float* boxes, const std::int64_t* begins, float threshold,
                              float offset, std::int64_t words, Word* overlaps) {
  const auto begin = begins[blockIdx.z], size = begins[blockIdx.z + 1] - begin;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * kBits + threadIdx.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kBits;
  if (static_cast<std::int64_t>(blockIdx.y) * kBits >= size || first >= size ||
      blockIdx.x < blockIdx.y)
    return;

  __shared__ BoxValues columns[kBits];
  if (first + threadIdx.x < size) columns[threadIdx.x] = box_at(boxes, begin + first + threadIdx.x);
  __syncthreads();
  if (row >= size) return;
  const auto box = box_at(boxes, begin + row);
  Word word = 0;
  for (int i = 0; i < kBits; ++i)
    if (first + i > row && first + i < size && iou(columns[i], box, offset) > threshold)
      word |= Word{1} << i;
  overlaps[(begin + row) * words + blockIdx.x] = word;
}

/// One block per group: from the best box on, what stays removes what it overlaps.
__global__ void remove_overlapping(const std::uint8_t* valid, const std::int64_t* begins,
                                   std::int64_t words, const Word* overlaps, std::uint8_t* keep) {
  extern __shared__ Word removed[];
  const auto begin = begins[blockIdx.x], size = begins[blockIdx.x + 1] - begin;
  const auto used = (size + kBits - 1) / kBits;
  for (auto w = static_cast<std::int64_t>(threadIdx.x); w < used; w += blockDim.x) removed[w] = 0;
  __syncthreads();
  for (std::int64_t i = 0; i < size; ++i) {
    const auto word = i / kBits;
    const bool stays = valid[begin + i] && !(removed[word] >> (i % kBits) & 1);
    __syncthreads();  // all have looked before anyone writes
    if (stays)
      for (auto w = word + threadIdx.x; w < used; w += blockDim.x)
        removed[w] |= overlaps[(begin + i) * words + w];
    if (threadIdx.x == 0) keep[begin + i] = stays;
    __syncthreads();
  }
}

}  // namespace

std::size_t nms_scratch_bytes(std::int64_t count, std::int64_t most) {
  return static_cast<std::size_t>(count * words_for(most)) * sizeof(Word);
}

void nms(const float* boxes, const std::uint8_t* valid, const std::int64_t* begins,
         std::int64_t groups, std::int64_t count, std::int64_t most, float threshold, float offset,
         void* scratch, std::uint8_t* keep, Stream stream) {
  if (count == 0 || groups == 0) return;
  constexpr std::int64_t kMostWords = 4096;  // 32 KiB of shared memory: 262,144 boxes a group
  const auto words = words_for(most);
  if (words > kMostWords) throw std::invalid_argument("nms: more than 262144 boxes in a group");
  auto* const overlaps = static_cast<Word*>(scratch);
  constexpr std::int64_t kMostGroups = 65535;  // a grid's last axis has at most
  for (std::int64_t first = 0; first < groups; first += kMostGroups) {
    const auto some =
        static_cast<unsigned>(groups - first < kMostGroups ? groups - first : kMostGroups);
    const dim3 grid(static_cast<unsigned>(words), static_cast<unsigned>(words), some);
    find_overlaps<<<grid, kBits, 0, stream>>>(boxes, begins + first, threshold, offset, words,
                                              overlaps);
    check_launch("nms: find_overlaps");
    remove_overlapping<<<some, kBits, static_cast<std::size_t>(words) * sizeof(Word), stream>>>(
        valid, begins + first, words, overlaps, keep);
    check_launch("nms: remove_overlapping");
  }
}

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

void decode_chosen(const ChosenAnchors& chosen, const BoxDecoding& coding, float min_side,
                   float* boxes, std::uint8_t* valid, Stream stream) {
  if (chosen.count == 0) return;
  decode_all<<<blocks_for(chosen.count), kThreads, 0, stream>>>(chosen, coding, min_side, boxes,
                                                                valid);
  check_launch("decode_chosen");
}

}  // namespace millrace::cuda
