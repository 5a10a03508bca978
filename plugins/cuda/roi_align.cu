#include "millrace/plugins/cuda/roi_align.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "millrace/plugins/cuda/launch.h"

namespace millrace::cuda {
namespace {

/// Computes one cell of a region per warp; each lane computes V channels.
template <typename T, int V>
__global__ void forward(Pyramid<const T> pyramid, Regions regions, RoiAlignSwitches switches,
                        T* output) {
  const int cells = switches.rows * switches.columns;
  const auto count = static_cast<std::int64_t>(regions.count) * cells;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kThreads / kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (auto cell = static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWarp) +
                   static_cast<int>(threadIdx.x) / kWarp;
       cell < count; cell += warps) {
    const SampledRegion region(pyramid, regions, static_cast<int>(cell / cells), switches);
    const int place = static_cast<int>(cell % cells);
    for (int channel = lane * V; channel < pyramid.channels; channel += kWarp * V) {
      float means[V];
      roi_cell<V>(pyramid, region, place / switches.columns, place % switches.columns, channel,
                  means);
      Pack<T, V> written;
      for (int v = 0; v < V; ++v) written.values[v] = static_cast<T>(means[v]);
      *reinterpret_cast<Pack<T, V>*>(output + cell * pyramid.channels + channel) = written;
    }
  }
}

constexpr int kSegment = 8;  // pixels of a row that a block processes together

/// Computes the gradient of kSegment pixels of a row of one image and level per block of kThreads /
/// V threads; each thread computes V channels. blockIdx: segment, row, image. The block scans the
/// regions in chunks of its width and lists, in order, those that read the segment.
template <typename T, int V>
__global__ void backward(const T* grad_output, Regions regions, RoiAlignSwitches switches,
                         Pyramid<T> gradients, int level) {
  constexpr int kWidth = kThreads / V;
  __shared__ int listed[kWidth];
  __shared__ int counts[kWarp];
  __shared__ float row_weights[kMaxCells];
  __shared__ float column_weights[kSegment][kMaxCells];

  const int image = static_cast<int>(blockIdx.z), y = static_cast<int>(blockIdx.y);
  const int width = gradients.widths[level], channels = gradients.channels;
  const int first = static_cast<int>(blockIdx.x) * kSegment;
  const int pixels = min(kSegment, width - first);
  const std::int64_t region_size =
      static_cast<std::int64_t>(switches.rows) * switches.columns * channels;
  T* const row =
      gradients.maps[level] +
      (static_cast<std::int64_t>(image) * gradients.heights[level] + y) * width * channels;

  for (int block = 0; block < channels; block += kThreads) {
    const int channel = block + static_cast<int>(threadIdx.x) * V;
    float sums[kSegment][V] = {};
    for (int start = 0; start < regions.count; start += kWidth) {
      const int mine = start + static_cast<int>(threadIdx.x);
      bool reads = mine < regions.count && regions.levels[mine] == level &&
                   static_cast<int>(regions.rois[mine * 5]) == image;
      if (reads) {
        const SampledRegion region(gradients, regions, mine, switches);
        reads = region.y.may_read(switches.rows, y, y) &&
                region.x.may_read(switches.columns, first, first + pixels - 1);
      }
      int size = 0;
      const int place = place_in_order(reads, size, counts);
      if (place >= 0) listed[place] = mine;
      __syncthreads();

      for (int l = 0; l < size; ++l) {
        const int r = listed[l];
        const SampledRegion region(gradients, regions, r, switches);
        for (int i = static_cast<int>(threadIdx.x); i < switches.rows + kSegment * switches.columns;
             i += kWidth) {
          if (i < switches.rows) {
            row_weights[i] = region.y.weight(i, y);
          } else {
            const int pixel = (i - switches.rows) / switches.columns,
                      cell = (i - switches.rows) % switches.columns;
            column_weights[pixel][cell] = region.x.weight(cell, first + pixel);
          }
        }
        __syncthreads();
        if (channel < channels)
#pragma unroll
          for (int p = 0; p < kSegment; ++p)  // unrolled, to keep the sums in registers
            if (p < pixels)
              gather_gradient<V>(grad_output + r * region_size + channel, row_weights,
                                 column_weights[p], switches, channels, sums[p]);
        __syncthreads();
      }
    }
    if (channel < channels)
#pragma unroll
      for (int p = 0; p < kSegment; ++p)
        if (p < pixels) {
          Pack<T, V> written;
          for (int v = 0; v < V; ++v) written.values[v] = static_cast<T>(sums[p][v]);
          *reinterpret_cast<Pack<T, V>*>(row + static_cast<std::int64_t>(first + p) * channels +
                                         channel) = written;
        }
  }
}

/// Returns true if the channel count is a multiple of V and all maps are aligned for packs of V
/// values.
template <int V, typename T>
bool takes_packs(const Pyramid<T>& pyramid, const void* cells) {
  bool all = pyramid.channels % V == 0 && is_aligned<T, V>(cells);
  for (int level = 0; level < pyramid.levels; ++level)
    all = all && is_aligned<T, V>(pyramid.maps[level]);
  return all;
}

template <int V, typename T>
void start_forward(const Pyramid<const T>& pyramid, const Regions& regions,
                   const RoiAlignSwitches& switches, T* output, Stream stream) {
  const auto cells = static_cast<std::int64_t>(regions.count) * switches.rows * switches.columns;
  forward<T, V>
      <<<blocks_for(cells * kWarp), kThreads, 0, stream>>>(pyramid, regions, switches, output);
  check_launch("roi_align_forward");
}

template <int V, typename T>
void start_backward(const T* grad_output, const Regions& regions, const RoiAlignSwitches& switches,
                    const Pyramid<T>& gradients, Stream stream) {
  for (int level = 0; level < gradients.levels; ++level) {
    const dim3 grid((static_cast<unsigned>(gradients.widths[level]) + kSegment - 1) / kSegment,
                    static_cast<unsigned>(gradients.heights[level]),
                    static_cast<unsigned>(gradients.images));
    backward<T, V>
        <<<grid, kThreads / V, 0, stream>>>(grad_output, regions, switches, gradients, level);
    check_launch("roi_align_backward");
  }
}

/// Throws std::invalid_argument for more than kMaxCells cells on an axis.
void check_cells(const RoiAlignSwitches& switches) {
  if (switches.rows > kMaxCells || switches.columns > kMaxCells)
    throw std::invalid_argument("roi_align: output must be at most 256 x 256 on a GPU");
}

}  // namespace

template <typename T>
void roi_align_forward(const Pyramid<const T>& pyramid, const Regions& regions,
                       const RoiAlignSwitches& switches, T* output, Stream stream) {
  check_cells(switches);
  if (regions.count == 0) return;
  constexpr int kTogether = 16 / sizeof(T);
  if (takes_packs<kTogether>(pyramid, output))
    start_forward<kTogether>(pyramid, regions, switches, output, stream);
  else
    start_forward<1>(pyramid, regions, switches, output, stream);
}

template <typename T>
void roi_align_backward(const T* grad_output, const Regions& regions,
                        const RoiAlignSwitches& switches, const Pyramid<T>& gradients,
                        Stream stream) {
  check_cells(switches);
  constexpr int kTogether = 4 / sizeof(T);
  if (takes_packs<kTogether>(gradients, grad_output))
    start_backward<kTogether>(grad_output, regions, switches, gradients, stream);
  else
    start_backward<1>(grad_output, regions, switches, gradients, stream);
}

#define MILLRACE_ROI_ALIGN(T)                                                            \
  template void roi_align_forward<T>(const Pyramid<const T>&, const Regions&,            \
                                     const RoiAlignSwitches&, T*, Stream);               \
  template void roi_align_backward<T>(const T*, const Regions&, const RoiAlignSwitches&, \
                                      const Pyramid<T>&, Stream);
MILLRACE_ROI_ALIGN(float)
MILLRACE_ROI_ALIGN(__half)
MILLRACE_ROI_ALIGN(__nv_bfloat16)
#undef MILLRACE_ROI_ALIGN

}  // namespace millrace::cuda
