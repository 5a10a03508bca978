#include "millrace/plugins/cuda/roi_align.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "millrace/plugins/cuda/launch.h"

namespace millrace::cuda {
namespace {

template <typename T>
__global__ void forward(Pyramid<const T> pyramid, Regions regions, RoiAlignSwitches switches,
                        T* output) {
  const std::int64_t cells = static_cast<std::int64_t>(switches.rows) * switches.columns;
  each_index(regions.count * cells * pyramid.channels, [&](std::int64_t i) {
    const auto cell = i / pyramid.channels;
    const SampledRegion region(pyramid, regions, static_cast<int>(cell / cells), switches);
    const int place = static_cast<int>(cell % cells);
    output[i] =
        static_cast<T>(roi_cell(pyramid, region, place / switches.columns, place % switches.columns,
                                static_cast<int>(i % pyramid.channels)));
  });
}

constexpr int kSegment = 8;  // pixels of a row that a block works out together

/// A block takes kSegment pixels of a row of one image and level (blockIdx: segment, row, image), a
/// thread takes a channel. Regions are looked through kThreads at a time; those that read the
/// segment are listed in their order.
template <typename T>
__global__ void backward(const T* grad_output, Regions regions, RoiAlignSwitches switches,
                         Pyramid<T> gradients, int level) {
  __shared__ int listed[kThreads];
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
    const int channel = block + static_cast<int>(threadIdx.x);
    float sums[kSegment] = {};
    for (int start = 0; start < regions.count; start += kThreads) {
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
             i += kThreads) {
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
          for (int p = 0; p < pixels; ++p)
            sums[p] += gathered_gradient(grad_output + r * region_size + channel, row_weights,
                                         column_weights[p], switches, channels);
        __syncthreads();
      }
    }
    if (channel < channels)
      for (int p = 0; p < pixels; ++p)
        row[static_cast<std::int64_t>(first + p) * channels + channel] = static_cast<T>(sums[p]);
  }
}

}  // namespace

template <typename T>
void roi_align_forward(const Pyramid<const T>& pyramid, const Regions& regions,
                       const RoiAlignSwitches& switches, T* output, Stream stream) {
  if (regions.count == 0) return;
  const auto count = static_cast<std::int64_t>(regions.count) * switches.rows * switches.columns *
                     pyramid.channels;
  forward<T><<<blocks_for(count), kThreads, 0, stream>>>(pyramid, regions, switches, output);
  check_launch("roi_align_forward");
}

template <typename T>
void roi_align_backward(const T* grad_output, const Regions& regions,
                        const RoiAlignSwitches& switches, const Pyramid<T>& gradients,
                        Stream stream) {
  if (switches.rows > kMaxCells || switches.columns > kMaxCells)
    throw std::invalid_argument("roi_align: at most 64 x 64 cells a region on a GPU");
  for (int level = 0; level < gradients.levels; ++level) {
    const dim3 grid((static_cast<unsigned>(gradients.widths[level]) + kSegment - 1) / kSegment,
                    static_cast<unsigned>(gradients.heights[level]),
                    static_cast<unsigned>(gradients.images));
    backward<T><<<grid, kThreads, 0, stream>>>(grad_output, regions, switches, gradients, level);
    check_launch("roi_align_backward");
  }
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
