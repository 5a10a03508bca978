#include "millrace/plugins/cuda/launch.h"
#include "millrace/plugins/cuda/mask_targets.h"

namespace millrace::cuda {
namespace {

constexpr int kMostCells = 64 * 64;

/// One block per region. Each crossing of a polygon's outline flips all cells after it in
/// column-major order; flips are counted modulo 2, so their order does not matter.
__global__ void rasterize(PolygonTable polygons, const float* boxes, int size, float* targets) {
  __shared__ unsigned flips[kMostCells + 1];
  __shared__ unsigned inside[kMostCells];
  const int cells = size * size;
  const auto height = static_cast<std::uint32_t>(size);
  const RegionGrid grid(boxes + static_cast<std::int64_t>(blockIdx.x) * 4, size);
  for (int i = static_cast<int>(threadIdx.x); i < cells; i += kThreads) inside[i] = 0;

  const auto* const own = polygons.object_begins + blockIdx.x;
  for (auto p = own[0]; p < own[1]; ++p) {
    const auto begin = polygons.polygon_begins[p], end = polygons.polygon_begins[p + 1];
    for (int i = static_cast<int>(threadIdx.x); i <= cells; i += kThreads) flips[i] = 0;
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < end - begin; i += kThreads)
      grid.side(polygons.points, begin, end, i)
          .each_crossing(height, height, [&](std::uint32_t at) { atomicXor(&flips[at], 1U); });
    __syncthreads();
    // Flips of the columns before, then down each column.
    for (int column = static_cast<int>(threadIdx.x); column < size; column += kThreads) {
      unsigned state = 0;
      for (int i = 0; i < column * size; ++i) state ^= flips[i];
      for (int row = 0; row < size; ++row) {
        state ^= flips[column * size + row];
        inside[row * size + column] |= state;
      }
    }
    __syncthreads();
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < cells; i += kThreads)
    targets[static_cast<std::int64_t>(blockIdx.x) * cells + i] = static_cast<float>(inside[i]);
}

}  // namespace

void mask_targets(const PolygonTable& polygons, const float* boxes, std::int64_t count, int size,
                  float* targets, Stream stream) {
  if (size < 1 || size * size > kMostCells)
    throw std::invalid_argument("mask_targets: 1 to 64 cells a side on a GPU");
  if (count == 0) return;
  rasterize<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(polygons, boxes, size, targets);
  check_launch("mask_targets");
}

}  // namespace millrace::cuda
