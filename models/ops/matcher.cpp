#include "millrace/models/ops/matcher.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "millrace/models/ops/cpu/simd.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/iou.h"

namespace millrace {
namespace {

constexpr std::int64_t kBlock = 1024;  // boxes compared together, to fit in the cache

/// Updates the best truth of each box with `count` overlaps with truth `row`; returns the highest
/// overlap.
MILLRACE_SIMD float take_row(const float* iou, std::int32_t row, std::int64_t count, float* best,
                             std::int32_t* truth) {
  constexpr std::int64_t kLanes = 16;
  float highest[kLanes] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    truth[i] = iou[i] > best[i] ? row : truth[i];
    best[i] = iou[i] > best[i] ? iou[i] : best[i];
  }
  const auto whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      highest[lane] = iou[i + lane] > highest[lane] ? iou[i + lane] : highest[lane];
  for (auto i = whole; i < count; ++i) highest[0] = std::max(highest[0], iou[i]);
  return *std::max_element(highest, highest + kLanes);
}

/// Marks the boxes whose overlap is the truth's highest.
MILLRACE_SIMD void mark_highest(const float* iou, float highest, std::int64_t count,
                                std::int8_t* label) {
  for (std::int64_t i = 0; i < count; ++i) label[i] = iou[i] == highest ? 1 : label[i];
}

/// Returns the smallest box around boxes begin .. end - 1, ignoring NaN.
MILLRACE_SIMD std::array<float, 4> bounds(const BoxPlanes& boxes, std::int64_t begin,
                                          std::int64_t end) {
  constexpr std::int64_t kLanes = 16;
  constexpr float kFar = std::numeric_limits<float>::infinity();
  std::array<float, kLanes> x1, y1, x2, y2;
  x1.fill(kFar), y1.fill(kFar), x2.fill(-kFar), y2.fill(-kFar);
  const auto take = [&](std::int64_t i, std::size_t lane) {
    x1[lane] = boxes.x1[i] < x1[lane] ? boxes.x1[i] : x1[lane];
    y1[lane] = boxes.y1[i] < y1[lane] ? boxes.y1[i] : y1[lane];
    x2[lane] = boxes.x2[i] > x2[lane] ? boxes.x2[i] : x2[lane];
    y2[lane] = boxes.y2[i] > y2[lane] ? boxes.y2[i] : y2[lane];
  };
  for (; begin + kLanes <= end; begin += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      take(begin + static_cast<std::int64_t>(lane), lane);
  for (; begin < end; ++begin) take(begin, 0);
  return {*std::min_element(x1.begin(), x1.end()), *std::min_element(y1.begin(), y1.end()),
          *std::max_element(x2.begin(), x2.end()), *std::max_element(y2.begin(), y2.end())};
}

/// Matches block by block of boxes.
class BlockMatcher {
 public:
  BlockMatcher(const at::Tensor& truth, const BoxPlanes& boxes, const MatchOptions& options)
      : truth_(truth),
        boxes_(boxes),
        bg_iou_thresh_(static_cast<float>(options.bg_iou_thresh)),
        fg_iou_thresh_(static_cast<float>(options.fg_iou_thresh)),
        offset_(static_cast<float>(options.offset)),
        blocks_((boxes_.count + kBlock - 1) / kBlock),
        highest_(static_cast<std::size_t>(truth_.count * blocks_)) {}

  /// Writes the match of each box; indices of truths start at `first`.
  void run(bool low_quality, std::int64_t first, std::int64_t* truth, std::int8_t* label) {
    each_block([&](std::int64_t block) { find_best(block, first, truth, label); });
    if (!low_quality || blocks_ == 0) return;

    std::vector<float> highest;  // highest overlap of each truth over all blocks
    for (std::int64_t row = 0; row < truth_.count; ++row)
      highest.push_back(*std::max_element(highest_of(row), highest_of(row) + blocks_));
    each_block([&](std::int64_t block) {
      const auto [begin, end] = range(block);
      std::array<float, kBlock> iou;
      for (std::int64_t row = 0; row < truth_.count; ++row) {
        const float value = highest[static_cast<std::size_t>(row)];
        if (value == 0 || highest_of(row)[block] != value) continue;
        iou_row(truth_, row, boxes_, begin, end, offset_, iou.data());
        mark_highest(iou.data(), value, end - begin, label + begin);
      }
    });
  }

 private:
  template <typename F>
  void each_block(F work) const {
    at::parallel_for(0, blocks_, 1, [&](std::int64_t first, std::int64_t last) {
      for (auto block = first; block < last; ++block) work(block);
    });
  }

  std::pair<std::int64_t, std::int64_t> range(std::int64_t block) const {
    return {block * kBlock, std::min((block + 1) * kBlock, boxes_.count)};
  }

  /// The truth's highest overlap within each block.
  float* highest_of(std::int64_t row) { return highest_.data() + row * blocks_; }

  /// Returns false if a truth is outside the bounds of a block and so overlaps none of its boxes,
  /// the usual case.
  bool may_touch(std::int64_t row, const std::array<float, 4>& bound) const {
    const float left = std::max(truth_.x1[row], bound[0]),
                right = std::min(truth_.x2[row], bound[2]);
    const float top = std::max(truth_.y1[row], bound[1]),
                bottom = std::min(truth_.y2[row], bound[3]);
    return right - left + offset_ > 0 && bottom - top + offset_ > 0;
  }

  void find_best(std::int64_t block, std::int64_t first, std::int64_t* truth, std::int8_t* label) {
    const auto [begin, end] = range(block);
    const auto bound = bounds(boxes_, begin, end);
    std::array<float, kBlock> iou, best{};
    std::array<std::int32_t, kBlock> best_row{};
    for (std::int64_t row = 0; row < truth_.count; ++row) {
      if (!may_touch(row, bound)) continue;
      iou_row(truth_, row, boxes_, begin, end, offset_, iou.data());
      highest_of(row)[block] = take_row(iou.data(), static_cast<std::int32_t>(row), end - begin,
                                        best.data(), best_row.data());
    }
    for (auto i = begin; i < end; ++i) {
      const auto place = static_cast<std::size_t>(i - begin);
      truth[i] = truth_.count > 0 ? first + best_row[place] : 0;
      label[i] = truth_.count > 0 && best[place] >= fg_iou_thresh_   ? 1
                 : truth_.count == 0 || best[place] < bg_iou_thresh_ ? 0
                                                                     : -1;
    }
  }

  BoxPlanes truth_;
  const BoxPlanes& boxes_;
  float bg_iou_thresh_, fg_iou_thresh_, offset_;
  std::int64_t blocks_;
  std::vector<float> highest_;  // (G, blocks), 0 if the truth is outside the block's bounds
};

std::tuple<at::Tensor, at::Tensor> match_on_cpu(const at::Tensor& truth, const at::Tensor& begins,
                                                const at::Tensor& boxes, double low, double high,
                                                bool low_quality, double offset) {
  const auto images = boxes.size(0), count = boxes.size(1);
  const auto* begin = begins.const_data_ptr<std::int64_t>();
  auto best = at::empty({images, count}, at::kLong), label = at::empty({images, count}, at::kChar);
  const bool shared = images > 0 && boxes.stride(0) == 0;  // anchors, shared by all images
  std::optional<BoxPlanes> planes;
  for (std::int64_t image = 0; image < images; ++image) {
    if (!planes || !shared) planes.emplace(boxes[image]);
    const auto own = truth.narrow(0, begin[image], begin[image + 1] - begin[image]);
    BlockMatcher(own, *planes, {low, high, low_quality, offset})
        .run(low_quality, begin[image], best.mutable_data_ptr<std::int64_t>() + image * count,
             label.mutable_data_ptr<std::int8_t>() + image * count);
  }
  return {std::move(best), std::move(label)};
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) { library.impl("match", match_on_cpu); }

void check_boxes(const at::Tensor& boxes, std::int64_t dimensions) {
  if (boxes.dim() != dimensions || boxes.size(-1) != 4 || boxes.scalar_type() != at::kFloat)
    throw std::invalid_argument(
        "match: truth must be (G, 4) float and boxes (N, 4), or (N, P, 4) for several images");
}

}  // namespace

Matches match(const at::Tensor& truth, const at::Tensor& boxes, const MatchOptions& options) {
  check_boxes(boxes, 2);
  const auto begins = at::arange(2, truth.options().dtype(at::kLong)) * truth.size(0);
  const auto [best, label] = match(truth, begins, boxes.unsqueeze(0), options);
  return {best[0], label[0]};
}

Matches match(const at::Tensor& truth, const at::Tensor& begins, const at::Tensor& boxes,
              const MatchOptions& options) {
  check_boxes(truth, 2);
  check_boxes(boxes, 3);
  if (begins.sizes() != at::IntArrayRef{boxes.size(0) + 1} || begins.scalar_type() != at::kLong)
    throw std::invalid_argument("match: begins must be (N + 1) int64");
  static const auto op = dispatched<decltype(match_on_cpu)>("millrace::match");
  auto [best, label] = op.call(truth, begins, boxes, options.bg_iou_thresh, options.fg_iou_thresh,
                               options.low_quality, options.offset);
  return {std::move(best), std::move(label)};
}

}  // namespace millrace
