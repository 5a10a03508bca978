#include "millrace/plugins/cuda/boxes.h"

#include "millrace/plugins/cuda/launch.h"

namespace millrace::cuda {
namespace {

constexpr std::int64_t kChunk = 4096;  // boxes that a block compares with one ground truth box

/// Computes the highest IoU of each ground truth box with the boxes of its image. blockIdx: ground
/// truth box, chunk of boxes. `highest` starts at 0. IoUs are not negative, so their bits are
/// ordered like the values, and atomicMax gives the same result in any order.
__global__ void find_highest(TruthTable truths, BoxTable boxes, float offset, float* highest) {
  __shared__ float shared[kThreads];
  const auto image = truths.image_of(blockIdx.x);
  const auto truth = box_at(truths.boxes, blockIdx.x);
  const auto first = static_cast<std::int64_t>(blockIdx.y) * kChunk;
  const auto last = first + kChunk < boxes.count ? first + kChunk : boxes.count;
  float best = 0;
  for (auto i = first + threadIdx.x; i < last; i += kThreads)
    best = fmaxf(best, iou(truth, boxes.at(image, i), offset));
  shared[threadIdx.x] = best;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half)
      shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  if (threadIdx.x == 0 && shared[0] > 0)
    atomicMax(reinterpret_cast<int*>(highest) + blockIdx.x, __float_as_int(shared[0]));
}

using Word = unsigned long long;
constexpr int kBits = 64;

std::int64_t words_for(std::int64_t most) { return (most + kBits - 1) / kBits; }

/// Sets a bit of overlaps[i][w] for each lower-scoring box of the group that overlaps box i.
/// blockIdx: word, 64 rows, group.
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

/// Goes through a group from the best box on; each kept box removes the boxes that it overlaps. One
/// block per group.
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
    __syncthreads();  // every thread reads `removed` before any thread writes it
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
  constexpr std::int64_t kMostWords = 4096;  // 32 KiB of shared memory: 262,144 boxes per group
  const auto words = words_for(most);
  if (words > kMostWords) throw std::invalid_argument("nms: more than 262144 boxes in one group");
  auto* const overlaps = static_cast<Word*>(scratch);
  constexpr std::int64_t kMostGroups = 65535;  // limit of a grid's third dimension
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

void match(const TruthTable& truths, const BoxTable& boxes, const MatchRules& rules, float* highest,
           std::int64_t* truth, std::int8_t* label, Stream stream) {
  if (truths.images == 0 || boxes.count == 0) return;
  if (rules.low_quality && truths.count > 0) {
    check(
        cudaMemsetAsync(highest, 0, static_cast<std::size_t>(truths.count) * sizeof(float), stream),
        "match: cudaMemsetAsync");
    const dim3 grid(static_cast<unsigned>(truths.count),
                    static_cast<unsigned>((boxes.count + kChunk - 1) / kChunk));
    find_highest<<<grid, kThreads, 0, stream>>>(truths, boxes, rules.offset, highest);
    check_launch("match: find_highest");
  }
  launch_each(truths.images * boxes.count, "match", stream, [=] __device__(std::int64_t i) {
    match_one(truths, boxes, highest, rules, i, truth, label);
  });
}

void make_keys(const float* values, const std::uint8_t* keep, std::int64_t rows,
               std::int64_t columns, std::int64_t* keys, Stream stream) {
  launch_each(rows * columns, "make_keys", stream, [=] __device__(std::int64_t i) {
    keys[i] =
        !keep || keep[i] ? key_of(values[i], static_cast<std::uint32_t>(i % columns)) : kNoKey;
  });
}

void split_keys(const std::int64_t* keys, std::int64_t count, float* values, std::int64_t* index,
                Stream stream) {
  launch_each(count, "split_keys", stream, [=] __device__(std::int64_t i) {
    values[i] = value_of(keys[i]);
    index[i] = index_of(keys[i]);
  });
}

void gather_boxes(const float* boxes, const std::int64_t* keys, std::int64_t rows,
                  std::int64_t columns, std::int64_t kept, float* gathered, std::int64_t* counts,
                  Stream stream) {
  // The keys of a row are in descending order, so the last valid key gives their count.
  launch_each(rows * kept, "gather_boxes", stream, [=] __device__(std::int64_t i) {
    const auto row = i / kept, place = i % kept;
    const bool there = keys[i] != kNoKey;
    const auto box = there ? box_at(boxes, row * columns + index_of(keys[i])) : BoxValues{};
    gathered[i * 4] = box.x1, gathered[i * 4 + 1] = box.y1;
    gathered[i * 4 + 2] = box.x2, gathered[i * 4 + 3] = box.y2;
    if (place == 0 && !there) counts[row] = 0;
    if (there && (place + 1 == kept || keys[i + 1] == kNoKey)) counts[row] = place + 1;
  });
}

void decode_chosen(const ChosenAnchors& chosen, const BoxDecoding& coding, float min_side,
                   float* boxes, std::uint8_t* valid, Stream stream) {
  launch_each(chosen.count, "decode_chosen", stream, [=] __device__(std::int64_t i) {
    decode_chosen(chosen, coding, min_side, i, boxes, valid);
  });
}

}  // namespace millrace::cuda
