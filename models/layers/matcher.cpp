#include "models/layers/matcher.h"

#include <ATen/Parallel.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "models/ops/simd.h"

namespace millrace {
namespace {

constexpr std::int64_t kColumns =
    2048;  // boxes whose best truth is worked out together, in the cache

/// best[i] and truth[i] become the largest of rows 0 .. rows - 1 in column i and its first row.
MILLRACE_SIMD void best_of_columns(const float* iou, std::int64_t rows, std::int64_t stride,
                                   std::int64_t count, float* best, std::int32_t* truth) {
  for (std::int64_t i = 0; i < count; ++i) {
    best[i] = iou[i];
    truth[i] = 0;
  }
  for (std::int64_t row = 1; row < rows; ++row)
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = iou[row * stride + i];
      truth[i] = value > best[i] ? static_cast<std::int32_t>(row) : truth[i];
      best[i] = value > best[i] ? value : best[i];
    }
}

/// Marks the columns whose value is the row's highest.
MILLRACE_SIMD void mark_highest(const float* row, float highest, std::int64_t count,
                                std::int8_t* label) {
  for (std::int64_t i = 0; i < count; ++i) label[i] = row[i] == highest ? 1 : label[i];
}

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

Matches match(const at::Tensor& iou, double low, double high, bool low_quality) {
  const auto rows = iou.size(0), columns = iou.size(1);
  Matches matches{at::zeros({columns}, at::kLong), at::zeros({columns}, at::kChar)};
  if (rows == 0 || columns == 0) return matches;

  const auto table = iou.contiguous();
  const auto* values = table.const_data_ptr<float>();
  const auto row_best = at::amax(table, 1);  // (G)
  const auto* highest = row_best.const_data_ptr<float>();
  auto* truth = matches.truth.mutable_data_ptr<std::int64_t>();
  auto* label = matches.label.mutable_data_ptr<std::int8_t>();
  const auto low_limit = static_cast<float>(low), high_limit = static_cast<float>(high);

  const auto blocks = (columns + kColumns - 1) / kColumns;
  at::parallel_for(0, blocks, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> best(kColumns);
    std::vector<std::int32_t> best_row(kColumns);
    for (auto begin = first * kColumns; begin < std::min(last * kColumns, columns);
         begin += kColumns) {
      const auto count = std::min(kColumns, columns - begin);
      best_of_columns(values + begin, rows, columns, count, best.data(), best_row.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const auto value = best[static_cast<std::size_t>(i)];
        truth[begin + i] = best_row[static_cast<std::size_t>(i)];
        label[begin + i] = value >= high_limit ? 1 : value < low_limit ? 0 : -1;
      }
      for (std::int64_t row = 0; low_quality && row < rows; ++row)
        mark_highest(values + row * columns + begin, highest[row], count, label + begin);
    }
  });
  return matches;
}

Samples sample(const at::Tensor& label, std::int64_t count, double positive_fraction, Rng& rng) {
  const auto labels = label.contiguous();
  const auto* values = labels.const_data_ptr<std::int8_t>();
  std::vector<std::int64_t> positive, negative;
  for (std::int64_t i = 0; i < labels.numel(); ++i)
    if (values[i] >= 0) (values[i] > 0 ? positive : negative).push_back(i);
  const auto most = static_cast<std::int64_t>(static_cast<double>(count) * positive_fraction);
  const auto positives = std::min(std::ssize(positive), most);
  const auto negatives = std::min(std::ssize(negative), count - positives);
  auto drawn = draw(std::move(positive), positives, rng);
  return {std::move(drawn), draw(std::move(negative), negatives, rng)};
}

}  // namespace millrace
