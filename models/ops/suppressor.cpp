#include "millrace/models/ops/suppressor.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "millrace/models/ops/cpu/simd.h"

namespace millrace {
namespace {

constexpr std::size_t kBlock = 32;  // boxes compared between two checks for an overlap
constexpr std::size_t kPlanes = 5;

struct Candidate {
  float x1, y1, x2, y2, area;
};

struct Planes {
  const float *x1, *y1, *x2, *y2, *area;
};

/// Returns the intersection of the box and the kept box `i`.
[[gnu::always_inline]] inline float common_area(const Candidate& box, const Planes& kept,
                                                std::size_t i, float offset) {
  const float left = kept.x1[i] > box.x1 ? kept.x1[i] : box.x1;
  const float top = kept.y1[i] > box.y1 ? kept.y1[i] : box.y1;
  const float right = kept.x2[i] < box.x2 ? kept.x2[i] : box.x2;
  const float bottom = kept.y2[i] < box.y2 ? kept.y2[i] : box.y2;
  const float width = right - left + offset, height = bottom - top + offset;
  return (width > 0 ? width : 0) * (height > 0 ? height : 0);
}

/// Returns true if the IoU with a box of the `blocks` blocks is above `threshold`. A product with a
/// slightly lower threshold finds the few candidates; the expensive quotient decides.
MILLRACE_SIMD bool overlaps(const Candidate& box, const Planes& kept, std::size_t blocks,
                            float threshold, float offset) {
  const float lower = threshold * (1 - 1e-5F);
  for (std::size_t start = 0; start < blocks * kBlock; start += kBlock) {
    int likely = 0, above = 0;
    for (std::size_t i = start; i < start + kBlock; ++i) {
      const float common = common_area(box, kept, i, offset);
      likely |= common > lower * (kept.area[i] + box.area - common);
    }
    if (!likely) continue;
    for (std::size_t i = start; i < start + kBlock; ++i) {
      const float common = common_area(box, kept, i, offset);
      above |= common / (kept.area[i] + box.area - common) > threshold;
    }
    if (above) return true;
  }
  return false;
}

}  // namespace

float rounded_down(double threshold) {
  const auto nearest = static_cast<float>(threshold);
  return nearest > threshold ? std::nextafter(nearest, -std::numeric_limits<float>::infinity())
                             : nearest;
}

Suppressor::Suppressor(std::size_t most, double threshold, double offset)
    : threshold_(rounded_down(threshold)),
      offset_(static_cast<float>(offset)),
      stride_((most + kBlock - 1) / kBlock * kBlock),
      planes_(kPlanes * stride_, std::numeric_limits<float>::quiet_NaN()) {
  if (!(threshold >= 0))
    throw std::invalid_argument("nms: the threshold must be an IoU of at least 0, not " +
                                std::to_string(threshold));
}

bool Suppressor::keep(const float* corners) {
  const Candidate box{corners[0], corners[1], corners[2], corners[3],
                      (corners[2] - corners[0] + offset_) * (corners[3] - corners[1] + offset_)};
  const float* p = planes_.data();
  const Planes kept{p, p + stride_, p + 2 * stride_, p + 3 * stride_, p + 4 * stride_};
  if (overlaps(box, kept, (count_ + kBlock - 1) / kBlock, threshold_, offset_)) return false;
  float* plane = planes_.data() + count_++;
  for (const float value : {box.x1, box.y1, box.x2, box.y2, box.area}) {
    *plane = value;
    plane += stride_;
  }
  return true;
}

}  // namespace millrace
