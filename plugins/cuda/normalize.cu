#include "millrace/plugins/cuda/normalize.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "millrace/plugins/cuda/launch.h"

namespace millrace::cuda {

template <typename T>
void normalize(const PixelTable& table, const std::int64_t* sizes, std::int64_t images,
               const PixelScaling& scaling, T* out, Stream stream) {
  for (std::int64_t first = 0; first < images; first += kSizesTogether) {
    const auto some = images - first < kSizesTogether ? images - first : kSizesTogether;
    ImageSizes own{};
    for (std::int64_t i = 0; i < some; ++i) {
      own.height[i] = static_cast<int>(sizes[2 * (first + i)]);
      own.width[i] = static_cast<int>(sizes[2 * (first + i) + 1]);
    }
    launch_each(
        some * table.height * table.width, "normalize", stream,
        [=] __device__(std::int64_t i) { normalize_pixel(table, own, scaling, first, i, out); });
  }
}

#define MILLRACE_NORMALIZE(T)                                                      \
  template void normalize<T>(const PixelTable&, const std::int64_t*, std::int64_t, \
                             const PixelScaling&, T*, Stream);
MILLRACE_NORMALIZE(float)
MILLRACE_NORMALIZE(__half)
MILLRACE_NORMALIZE(__nv_bfloat16)
#undef MILLRACE_NORMALIZE

}  // namespace millrace::cuda
