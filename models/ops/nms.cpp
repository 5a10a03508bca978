#include "models/ops/nms.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "models/ops/simd.h"

namespace millrace {
namespace {

constexpr std::size_t kBlock = 32;  // boxes compared before looking whether one overlapped

struct Candidate {
  float x1, y1, x2, y2, area;
};

/// Kept boxes, a plane a number.
struct Planes {
  const float *x1, *y1, *x2, *y2, *area;
};

/// Whether the IoU with one of `blocks` blocks of boxes is above `threshold`. The arithmetic is torchvision's, to the bit.
MILLRACE_SIMD bool overlaps(const Candidate& box, const Planes& kept, std::size_t blocks,
                            float threshold, float offset) {
  for (std::size_t start = 0; start < blocks * kBlock; start += kBlock) {
    int above = 0;
    for (std::size_t i = start; i < start + kBlock; ++i) {
      const float left = kept.x1[i] > box.x1 ? kept.x1[i] : box.x1;
      const float top = kept.y1[i] > box.y1 ? kept.y1[i] : box.y1;
      const float right = kept.x2[i] < box.x2 ? kept.x2[i] : box.x2;
      const float bottom = kept.y2[i] < box.y2 ? kept.y2[i] : box.y2;
      const float width = right - left + offset, height = bottom - top + offset;
      const float common = (width > 0 ? width : 0) * (height > 0 ? height : 0);
      above |= common / (kept.area[i] + box.area - common) > threshold;
    }
    if (above) return true;
  }
  return false;
}

/// The boxes of one group that were kept so far. Room that is not taken holds boxes that overlap nothing.
class Kept {
 public:
  explicit Kept(std::size_t most)
      : stride_((most + kBlock - 1) / kBlock * kBlock),
        planes_(5 * stride_, std::numeric_limits<float>::quiet_NaN()) {}

  bool overlap(const Candidate& box, float threshold, float offset) const {
    const float* p = planes_.data();
    const Planes planes{p, p + stride_, p + 2 * stride_, p + 3 * stride_, p + 4 * stride_};
    return overlaps(box, planes, (count_ + kBlock - 1) / kBlock, threshold, offset);
  }

  void add(const Candidate& box) {
    float* plane = planes_.data() + count_++;
    for (const float value : {box.x1, box.y1, box.x2, box.y2, box.area}) {
      *plane = value;
      plane += stride_;
    }
  }

 private:
  std::size_t stride_, count_ = 0;
  std::vector<float> planes_;
};

/// Ranks of boxes, best first.
using Ranks = std::vector<std::int64_t>;

/// The ranks of each group, in the order in which groups appear.
std::vector<Ranks> split(const std::int64_t* order, std::int64_t count,
                         const std::int64_t* groups) {
  std::vector<Ranks> result;
  std::unordered_map<std::int64_t, std::size_t> place;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    const auto [found, added] = place.emplace(groups ? groups[order[rank]] : 0, result.size());
    if (added) result.emplace_back();
    result[found->second].push_back(rank);
  }
  return result;
}

/// The largest float that is not above `threshold`: comparing with it is comparing with the double itself.
float rounded_down(double threshold) {
  const auto nearest = static_cast<float>(threshold);
  return nearest > threshold ? std::nextafter(nearest, -std::numeric_limits<float>::infinity())
                             : nearest;
}

at::Tensor suppress(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                    double threshold, double offset) {
  const auto count = scores.numel();
  if (boxes.dim() != 2 || boxes.size(0) != count || boxes.size(1) != 4 || scores.dim() != 1)
    throw std::invalid_argument("nms: boxes must be (N, 4) and scores (N)");
  const auto corners = boxes.contiguous();
  const auto order_tensor =
      std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  const float* box = corners.const_data_ptr<float>();
  const std::int64_t* order = order_tensor.const_data_ptr<std::int64_t>();
  const float limit = rounded_down(threshold), extra = static_cast<float>(offset);

  std::vector<char> keep(static_cast<std::size_t>(count), 0);  // by rank
  const auto filter = [&](const Ranks& ranks) {
    Kept kept(ranks.size());
    for (const auto rank : ranks) {
      const float* b = box + 4 * order[rank];
      const Candidate candidate{b[0], b[1], b[2], b[3],
                                (b[2] - b[0] + extra) * (b[3] - b[1] + extra)};
      if (kept.overlap(candidate, limit, extra)) continue;
      kept.add(candidate);
      keep[static_cast<std::size_t>(rank)] = 1;
    }
  };
  const auto parts =
      split(order, count, groups.defined() ? groups.const_data_ptr<std::int64_t>() : nullptr);
  std::atomic<std::size_t> next = 0;  // groups differ in size: each thread takes the next one
  at::parallel_for(0, std::ssize(parts), 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t part; (part = next++) < parts.size();) filter(parts[part]);
  });

  auto result = at::empty({std::count(keep.begin(), keep.end(), 1)}, order_tensor.options());
  auto* out = result.mutable_data_ptr<std::int64_t>();
  for (std::int64_t rank = 0; rank < count; ++rank)
    if (keep[static_cast<std::size_t>(rank)]) *out++ = order[rank];
  return result;
}

}  // namespace

at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double threshold, double offset) {
  return suppress(boxes, scores, {}, threshold, offset);
}

at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                       double threshold, double offset) {
  if (groups.sizes() != scores.sizes() || groups.scalar_type() != at::kLong)
    throw std::invalid_argument("batched_nms: groups must be (N) int64");
  return suppress(boxes, scores, groups.contiguous(), threshold, offset);
}

}  // namespace millrace
