#include "millrace/models/ops/matcher.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/iou.h"
#include "millrace/models/ops/simd.h"

namespace millrace {
namespace {

constexpr std::int64_t kBlock = 1024;  // boxes compared together, in the cache

/// Updates the best truth of each box by `count` overlaps with truth `row`; returns the highest.
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

/// The smallest box around boxes begin .. end, ignoring NaN.
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

/// Matching by blocks of boxes.
class BlockMatcher {
 public:
  BlockMatcher(const at::Tensor& truth, const at::Tensor& boxes, const MatchOptions& options)
      : truth_(truth),
        boxes_(boxes),
        low_(static_cast<float>(options.low)),
        high_(static_cast<float>(options.high)),
        offset_(static_cast<float>(options.offset)),
        blocks_((boxes_.count + kBlock - 1) / kBlock),
        highest_(static_cast<std::size_t>(truth_.count * blocks_)) {}

  Matches run(bool low_quality) {
    Matches matches{at::empty({boxes_.count}, at::kLong), at::empty({boxes_.count}, at::kChar)};
    auto* truth = matches.truth.mutable_data_ptr<std::int64_t>();
    auto* label = matches.label.mutable_data_ptr<std::int8_t>();
    each_block([&](std::int64_t block) { find_best(block, truth, label); });
    if (!low_quality || blocks_ == 0) return matches;

    std::vector<float> highest;  // overlap of each truth, over all blocks
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
    return matches;
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

  /// A truth outside the bounds of a block overlaps none of its boxes, which is true of most.
  bool may_touch(std::int64_t row, const std::array<float, 4>& bound) const {
    const float left = std::max(truth_.x1[row], bound[0]),
                right = std::min(truth_.x2[row], bound[2]);
    const float top = std::max(truth_.y1[row], bound[1]),
                bottom = std::min(truth_.y2[row], bound[3]);
    return right - left + offset_ > 0 && bottom - top + offset_ > 0;
  }

  void find_best(std::int64_t block, std::int64_t* truth, std::int8_t* label) {
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
      truth[i] = best_row[place];
      label[i] = truth_.count > 0 && best[place] >= high_  ? 1
                 : truth_.count == 0 || best[place] < low_ ? 0
                                                           : -1;
    }
  }

  BoxPlanes truth_, boxes_;
  float low_, high_, offset_;
  std::int64_t blocks_;
  std::vector<float> highest_;  // (G, blocks), 0 where the two are far apart
};

std::tuple<at::Tensor, at::Tensor> match_on_cpu(const at::Tensor& truth, const at::Tensor& boxes,
                                                double low, double high, bool low_quality,
                                                double offset) {
  const MatchOptions options{low, high, low_quality, offset};
  auto matches = BlockMatcher(truth, boxes, options).run(low_quality);
  return {std::move(matches.truth), std::move(matches.label)};
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) { library.impl("match", match_on_cpu); }

/// `count` of `from`, drawn without replacement, ascending.
at::Tensor draw(std::vector<std::int64_t> from, std::int64_t count, Rng& rng) {
  const auto drawn = from.begin() + count;
  if (drawn != from.end()) {  // the start of a Fisher-Yates shuffle
    for (auto place = from.begin(); place != drawn; ++place)
      std::iter_swap(place, place + static_cast<std::ptrdiff_t>(
                                        rng.below(static_cast<std::uint64_t>(from.end() - place))));
    std::sort(from.begin(), drawn);
  }
  auto result = at::empty({count}, at::kLong);
  std::copy(from.begin(), drawn, result.mutable_data_ptr<std::int64_t>());
  return result;
}

}  // namespace

Matches match(const at::Tensor& truth, const at::Tensor& boxes, const MatchOptions& options) {
  for (const auto* list : {&truth, &boxes})
    if (list->dim() != 2 || list->size(1) != 4 || list->scalar_type() != at::kFloat)
      throw std::invalid_argument("match: truth and boxes must be (G, 4) and (N, 4) float");
  static const auto op = dispatched<decltype(match_on_cpu)>("millrace::match");
  auto [best, label] =
      op.call(truth, boxes, options.low, options.high, options.low_quality, options.offset);
  return {std::move(best), std::move(label)};
}

Samples sample(const at::Tensor& label, std::int64_t count, double positive_fraction, Rng& rng) {
  const auto labels = label.cpu().contiguous();
  const auto* values = labels.const_data_ptr<std::int8_t>();
  std::vector<std::int64_t> positive, negative;
  for (std::int64_t i = 0; i < labels.numel(); ++i)
    if (values[i] >= 0) (values[i] > 0 ? positive : negative).push_back(i);
  const auto most = static_cast<std::int64_t>(static_cast<double>(count) * positive_fraction);
  const auto positives = std::min(std::ssize(positive), most);
  const auto negatives = std::min(std::ssize(negative), count - positives);
  const auto drawn = draw(std::move(positive), positives, rng);
  return {drawn.to(label.device()), draw(std::move(negative), negatives, rng).to(label.device())};
}

}  // namespace millrace
