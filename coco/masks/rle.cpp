// Operations on run lengths: areas, boxes, unions, intersections, differences, windows and IoU.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>

#include "millrace/base/errors.h"
#include "millrace/coco/masks/mask_extent.h"
#include "millrace/coco/masks/masks.h"
#include "millrace/coco/masks/run_writer.h"

namespace millrace::coco {
namespace {

/// Iterates over the stretches of inside pixels of a mask.
class Inside {
 public:
  explicit Inside(const Rle& mask) : counts_(mask.counts) { next(); }

  explicit operator bool() const { return begin < end; }
  void next() {
    begin = end;
    while (begin == end && at_ + 1 < counts_.size()) {
      begin = end + counts_[at_];
      end = begin + counts_[at_ + 1];
      at_ += 2;
    }
  }

  std::uint32_t begin = 0, end = 0;

 private:
  std::span<const std::uint32_t> counts_;
  std::size_t at_ = 0;
};

Rle united(const Rle& a, const Rle& b) {
  RunWriter out(a.height, a.width, a.counts.size() + b.counts.size());
  std::uint32_t begin = 0, end = 0;  // the current stretch
  for (Inside left(a), right(b); left || right;) {
    Inside& first = !right || (left && left.begin <= right.begin) ? left : right;
    if (first.begin > end) {
      out.add(begin, end);
      begin = first.begin;
    }
    end = std::max(end, first.end);
    first.next();
  }
  out.add(begin, end);
  return std::move(out).finish();
}

Rle shared(const Rle& a, const Rle& b) {
  RunWriter out(a.height, a.width, a.counts.size() + b.counts.size());
  for (Inside left(a), right(b); left && right;) {
    out.add(std::max(left.begin, right.begin), std::min(left.end, right.end));
    (left.end < right.end ? left : right).next();
  }
  return std::move(out).finish();
}

void check_sizes(const Rle& a, const Rle& b, std::string_view what) {
  if (a.height != b.height || a.width != b.width)
    throw Error(
        fmt::format("masks of different size, {} x {} and {} x {} (height x width), have no {}",
                    a.height, a.width, b.height, b.width, what));
}

/// Folds all masks with the binary operation `both`.
template <typename F>
Rle folded(std::span<const Rle> masks, std::string_view what, F both) {
  if (masks.empty()) return {};
  Rle all = masks[0];
  for (const Rle& mask : masks.subspan(1)) {
    check_sizes(all, mask, what);
    all = both(all, mask);
  }
  return all;
}

}  // namespace

std::uint64_t area(const Rle& mask) {
  std::uint64_t pixels = 0;
  for (std::size_t i = 1; i < mask.counts.size(); i += 2) pixels += mask.counts[i];
  return pixels;
}

Box bounding_box(const Rle& mask) { return extent_of(mask).box; }

MaskExtent extent_of(const Rle& mask) {
  ExtentMeter meter(mask.height, mask.width);
  for (std::size_t i = 0; i + 1 < mask.counts.size(); i += 2) {
    meter.skip(mask.counts[i]);
    meter.inside(mask.counts[i + 1]);
  }
  return meter.finish();
}

Rle merge(std::span<const Rle> masks) { return folded(masks, "union", united); }

Rle intersect(std::span<const Rle> masks) { return folded(masks, "intersection", shared); }

Rle difference(const Rle& mask, const Rle& other) {
  check_sizes(mask, other, "difference");
  RunWriter out(mask.height, mask.width, mask.counts.size() + other.counts.size());
  Inside hole(other);
  for (Inside run(mask); run; run.next()) {
    std::uint32_t begin = run.begin;
    while (hole && hole.begin < run.end) {
      out.add(begin, hole.begin);
      begin = std::max(begin, hole.end);
      if (hole.end > run.end) break;  // the hole may reach into the next run
      hole.next();
    }
    out.add(begin, run.end);
  }
  return std::move(out).finish();
}

Rle window(const Rle& mask, std::int64_t x, std::int64_t y, std::uint32_t height,
           std::uint32_t width) {
  RunWriter out(height, width);
  const auto row = [&](std::int64_t r) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(r - y, 0, height));
  };
  for (Inside run(mask); run; run.next())
    for (std::uint32_t begin = run.begin; begin < run.end;) {
      const std::uint32_t top = begin / mask.height * mask.height;  // first row of this column
      const std::uint32_t end = std::min(run.end, top + mask.height);
      const std::int64_t column = std::int64_t{begin / mask.height} - x;
      if (column >= 0 && column < width) {
        const auto start = static_cast<std::uint32_t>(column) * height;
        out.add(start + row(begin - top), start + row(end - top));
      }
      begin = end;
    }
  return std::move(out).finish();
}

// Walks the runs of both masks once; odd runs are inside.
std::uint64_t shared_pixels(const Rle& a, const Rle& b) {
  std::uint64_t shared = 0;
  std::uint32_t begin_a = 0, end_a = 0, begin_b = 0, end_b = 0;
  const std::size_t runs_a = a.counts.size() / 2 * 2, runs_b = b.counts.size() / 2 * 2;
  for (std::size_t i = 0, j = 0;;) {
    if (end_a <= end_b) {
      if (i == runs_a) break;
      begin_a = end_a + a.counts[i];
      end_a = begin_a + a.counts[i + 1];
      i += 2;
    } else {
      if (j == runs_b) break;
      begin_b = end_b + b.counts[j];
      end_b = begin_b + b.counts[j + 1];
      j += 2;
    }
    const std::uint32_t begin = std::max(begin_a, begin_b), end = std::min(end_a, end_b);
    if (begin < end) shared += end - begin;
  }
  return shared;
}

std::vector<double> mask_iou(std::span<const Rle> detections, std::span<const Rle> truths,
                             std::span<const std::uint8_t> crowd) {
  std::vector<MaskExtent> extents;
  extents.reserve(truths.size());
  for (const Rle& truth : truths) extents.push_back(extent_of(truth));
  std::vector<double> result(detections.size() * truths.size());
  tbb::parallel_for(std::size_t{0}, detections.size(), [&](std::size_t d) {
    const MaskExtent extent = extent_of(detections[d]);
    for (std::size_t g = 0; g < truths.size(); ++g)
      result[d * truths.size() + g] = iou(extent, extents[g], !crowd.empty() && crowd[g], 0,
                                          [&] { return shared_pixels(detections[d], truths[g]); });
  });
  return result;
}

}  // namespace millrace::coco
