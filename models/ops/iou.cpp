#include "millrace/models/ops/iou.h"

#include "millrace/models/ops/cpu/simd.h"

namespace millrace {

BoxPlanes::BoxPlanes(const at::Tensor& boxes)
    : count(boxes.size(0)),
      memory(boxes.t().contiguous()),
      x1(memory.const_data_ptr<float>()),
      y1(x1 + count),
      x2(y1 + count),
      y2(x2 + count) {}

MILLRACE_SIMD void iou_row(const BoxPlanes& a, std::int64_t row, const BoxPlanes& b,
                           std::int64_t begin, std::int64_t end, float offset, float* result) {
  const float x1 = a.x1[row], y1 = a.y1[row], x2 = a.x2[row], y2 = a.y2[row];
  const float area = (x2 - x1 + offset) * (y2 - y1 + offset);
  for (auto i = begin; i < end; ++i) {
    const float bx1 = b.x1[i], by1 = b.y1[i], bx2 = b.x2[i], by2 = b.y2[i];
    const float left = bx1 > x1 ? bx1 : x1, top = by1 > y1 ? by1 : y1;
    const float right = bx2 < x2 ? bx2 : x2, bottom = by2 < y2 ? by2 : y2;
    const float width = right - left + offset, height = bottom - top + offset;
    const float common = (width > 0 ? width : 0) * (height > 0 ? height : 0);
    const float ratio = common / (area + (bx2 - bx1 + offset) * (by2 - by1 + offset) - common);
    result[i - begin] = ratio > 0 ? ratio : 0;  // 0 for 0 / 0
  }
}

}  // namespace millrace
