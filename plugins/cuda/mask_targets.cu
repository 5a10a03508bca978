#include "millrace/plugins/cuda/launch.h"
#include "millrace/plugins/cuda/mask_targets.h"

namespace millrace::cuda {
namespace {

constexpr int kMostWords = kMostTargetCells * kMostTargetCells / 32 + 1;

/// Rasterises the polygons of one region per block. Each crossing of a polygon's outline flips all
/// cells after it in column-major order; flips are counted modulo 2, so their order does not
/// matter.
__global__ void rasterize(PolygonTable polygons, const std::int64_t* objects, const float* boxes,
                          int size, float* targets) {
  __shared__ unsigned flips[kMostWords];   // bits in column-major order
  __shared__ unsigned inside[kMostWords];  // bits in row-major order
  const int cells = size * size, words = cells / 32 + 1;
  const auto height = static_cast<std::uint32_t>(size);
  const RegionGrid grid(boxes + static_cast<std::int64_t>(blockIdx.x) * 4, size);
  for (int i = static_cast<int>(threadIdx.x); i < words; i += kThreads) inside[i] = 0;

  const auto* const own = polygons.object_begins + objects[blockIdx.x];
  for (auto p = own[0]; p < own[1]; ++p) {
    const auto begin = polygons.polygon_begins[p], end = polygons.polygon_begins[p + 1];
    for (int i = static_cast<int>(threadIdx.x); i < words; i += kThreads) flips[i] = 0;
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < end - begin; i += kThreads)
      grid.side(polygons.points, begin, end, i)
          .each_crossing(height, height,
                         [&](std::uint32_t at) { atomicXor(&flips[at / 32], bit_of(at)); });
    __syncthreads();
    for (int column = static_cast<int>(threadIdx.x); column < size; column += kThreads)
      each_inside(flips, size, column, [&](int row) {
        const auto cell = static_cast<std::uint32_t>(row * size + column);
        atomicOr(&inside[cell / 32], bit_of(cell));
      });
    __syncthreads();
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < cells; i += kThreads)
    targets[static_cast<std::int64_t>(blockIdx.x) * cells + i] =
        static_cast<float>((inside[i / 32] >> (i % 32)) & 1);
}

}  // namespace

void mask_targets(const PolygonTable& polygons, const std::int64_t* objects, const float* boxes,
                  std::int64_t count, int size, float* targets, Stream stream) {
  if (size < 1 || size > kMostTargetCells)
    throw std::invalid_argument("mask_targets: size must be 1 to 256 on a GPU");
  if (count == 0) return;
  rasterize<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(polygons, objects, boxes, size,
                                                                   targets);
  check_launch("mask_targets");
}

}  // namespace millrace::cuda
