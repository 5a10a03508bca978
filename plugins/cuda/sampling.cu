#include "millrace/plugins/cuda/launch.h"
#include "millrace/plugins/cuda/sampling.h"

namespace millrace::cuda {
namespace {

/// Counts the labels of one chunk per block. blockIdx: chunk, image.
__global__ void count_all(const std::int8_t* labels, std::int64_t count, std::int32_t* counts) {
  const auto image = static_cast<std::int64_t>(blockIdx.y);
  const auto first = static_cast<std::int64_t>(blockIdx.x) * kLabelChunk;
  int foreground = 0, background = 0;
  for (int i = 0; i < kLabelChunk; i += kThreads) {
    const auto place = first + i + threadIdx.x;
    const int label = place < count ? labels[image * count + place] : -1;
    foreground += __syncthreads_count(label == 1);
    background += __syncthreads_count(label == 0);
  }
  if (threadIdx.x != 0) return;
  auto* const own = counts + (image * gridDim.x + blockIdx.x) * 2;
  own[0] = foreground, own[1] = background;
}

}  // namespace

void count_labels(const std::int8_t* labels, std::int64_t images, std::int64_t count,
                  std::int32_t* counts, Stream stream) {
  if (images == 0 || count == 0) return;
  constexpr std::int64_t kMostImages = 65535;  // limit of a grid's second dimension
  const auto chunks = (count + kLabelChunk - 1) / kLabelChunk;
  for (std::int64_t first = 0; first < images; first += kMostImages) {
    const auto some = images - first < kMostImages ? images - first : kMostImages;
    const dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(some));
    count_all<<<grid, kThreads, 0, stream>>>(labels + first * count, count,
                                             counts + first * chunks * 2);
    check_launch("count_labels");
  }
}

void find_labels(const LabelTable& table, const std::int64_t* wanted, std::int64_t wanted_count,
                 std::int64_t columns, std::int64_t* places, Stream stream) {
  // The blocks are small because each rank takes one thread's search, and there are only a few
  // thousand ranks.
  constexpr int kFew = 32;
  launch_each(
      wanted_count, "find_labels", stream,
      [=] __device__(std::int64_t i) { places[i] = table.place(wanted + i * columns); }, kFew);
}

}  // namespace millrace::cuda
