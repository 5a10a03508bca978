#include "millrace/plugins/cuda/finish.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "millrace/plugins/cuda/launch.h"

namespace millrace::cuda {
namespace {

/// Processes V values of neighbouring channels at a time.
template <typename T, int V>
void finish_packs(T* y, std::int64_t packs, std::int64_t channels, const Epilogue<T>& epilogue,
                  Stream stream) {
  launch_each(packs, "finish_convolution", stream, [=] __device__(std::int64_t i) {
    auto* const place = reinterpret_cast<Pack<T, V>*>(y) + i;
    auto values = *place;
    Pack<T, V> added{};
    if (epilogue.add) added = reinterpret_cast<const Pack<T, V>*>(epilogue.add)[i];
    const auto channel = i * V % channels;
    for (int v = 0; v < V; ++v)
      values.values[v] = static_cast<T>(epilogue(static_cast<float>(values.values[v]),
                                                 static_cast<float>(added.values[v]), channel + v));
    *place = values;
  });
}

}  // namespace

template <typename T>
void finish(T* y, std::int64_t count, std::int64_t channels, const Epilogue<T>& epilogue,
            Stream stream) {
  constexpr int kTogether = 16 / sizeof(T);
  if (channels % kTogether == 0 && is_aligned<T, kTogether>(y) &&
      is_aligned<T, kTogether>(epilogue.add))
    finish_packs<T, kTogether>(y, count / kTogether, channels, epilogue, stream);
  else
    finish_packs<T, 1>(y, count, channels, epilogue, stream);
}

#define MILLRACE_FINISH(T) \
  template void finish<T>(T*, std::int64_t, std::int64_t, const Epilogue<T>&, Stream);
MILLRACE_FINISH(float)
MILLRACE_FINISH(__half)
MILLRACE_FINISH(__nv_bfloat16)
#undef MILLRACE_FINISH

}  // namespace millrace::cuda
