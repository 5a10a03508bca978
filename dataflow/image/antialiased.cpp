// Follows Pillow's src/libImaging/Resample.c. When rows are mixed, vectors run along columns. When
// columns are mixed, sixteen rows at a time are transposed first, and vectors run across them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "millrace/dataflow/image/bilinear.h"

// Also compiled for newer processors. Sanitizers exclude it, since they start after the loader,
// which selects the version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define MILLRACE_FOR_VECTORS [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define MILLRACE_FOR_VECTORS
#endif

namespace millrace {
namespace {

constexpr int kChannels = 3;
constexpr int kPrecision = 32 - 8 - 2;  // bits of a weight
constexpr std::size_t kLanes = 16;

using Bytes [[gnu::vector_size(kLanes)]] = std::uint8_t;
using Words [[gnu::vector_size(kLanes * 2)]] = std::uint16_t;
using Sums [[gnu::vector_size(kLanes * 4)]] = std::int32_t;
using Square = std::array<Bytes, kLanes>;

/// The image pixels of one target pixel: `count` from `first`, with weights starting at index
/// `weights`.
struct Support {
  std::int32_t first = 0, count = 0;
  std::size_t weights = 0;
};

struct Filter {
  std::vector<Support> supports;  // one per target pixel
  std::vector<std::int32_t> weights;
};

/// Returns the weights for resizing `from` pixels to `to`, in Pillow's arithmetic.
Filter triangles(int from, int to) {
  Filter filter;
  const double scale = static_cast<double>(from) / to, reach = std::max(scale, 1.0),
               inverse = 1.0 / reach;
  std::vector<double> shares;
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(centre - reach + 0.5), 0);
    const int end = std::min(static_cast<int>(centre + reach + 0.5), from);
    shares.clear();
    double sum = 0;
    for (int x = first; x < end; ++x) {
      const double distance = std::abs((x - centre + 0.5) * inverse);
      sum += shares.emplace_back(distance < 1.0 ? 1.0 - distance : 0.0);
    }
    filter.supports.push_back({first, end - first, filter.weights.size()});
    for (const double share : shares)
      filter.weights.push_back(
          static_cast<std::int32_t>(0.5 + (sum != 0 ? share / sum : share) * (1 << kPrecision)));
  }
  return filter;
}

[[gnu::always_inline]] inline Bytes load(const std::uint8_t* from) {
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

[[gnu::always_inline]] inline Sums widened(const Bytes& bytes) {
  Sums sums;
  for (std::size_t i = 0; i < kLanes; ++i) sums[i] = bytes[i];
  return sums;
}

/// Converts sums of pixels times weights to pixels: rounded, at most 255.
[[gnu::always_inline]] inline Bytes rounded(const Sums& sums) {
  const Sums pixels = sums >> kPrecision, most = Sums{} + 255;
  return __builtin_convertvector(__builtin_convertvector(pixels < most ? pixels : most, Words),
                                 Bytes);
}

constexpr std::int32_t kHalf = 1 << (kPrecision - 1);

/// Transposes a square.
[[gnu::always_inline]] inline void transpose(Square& square) {
  for (int round = 0; round < 4; ++round) {
    const auto from = square;
    for (std::size_t i = 0; i < kLanes / 2; ++i) {
      const auto &upper = from[i], &lower = from[i + kLanes / 2];
      square[2 * i] = __builtin_shufflevector(upper, lower, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                              21, 6, 22, 7, 23);
      square[2 * i + 1] = __builtin_shufflevector(upper, lower, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                                  28, 13, 29, 14, 30, 15, 31);
    }
  }
}

/// Transposes sixteen rows of `size` bytes into `to`; each sixteen bytes of it are a column.
MILLRACE_FOR_VECTORS
void to_columns(const std::array<const std::uint8_t*, kLanes>& rows, std::size_t size,
                std::uint8_t* to) {
  const auto next = [&](std::size_t i, std::size_t bytes) __attribute__((always_inline)) {
    Square square{};
    for (std::size_t r = 0; r < kLanes; ++r) std::memcpy(&square[r], rows[r] + i, bytes);
    transpose(square);
    std::memcpy(to + i * kLanes, square.data(), sizeof square);
  };
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) next(i, kLanes);
  if (i < size) next(i, size - i);
}

/// Transposes back, the first `count` rows only.
MILLRACE_FOR_VECTORS
void to_rows(const std::uint8_t* from, std::size_t size,
             const std::array<std::uint8_t*, kLanes>& rows, std::size_t count) {
  const auto next = [&](std::size_t i, std::size_t bytes) __attribute__((always_inline)) {
    Square square;
    std::memcpy(square.data(), from + i * kLanes, sizeof square);
    transpose(square);
    for (std::size_t r = 0; r < count; ++r) std::memcpy(rows[r] + i, &square[r], bytes);
  };
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) next(i, kLanes);
  if (i < size) next(i, size - i);
}

/// Mixes columns of sixteen rows to the target's columns.
MILLRACE_FOR_VECTORS
void mix_columns(const std::uint8_t* from, const Filter& filter, std::uint8_t* to) {
  for (const auto& support : filter.supports) {
    const auto* weights = filter.weights.data() + support.weights;
    const auto* at = from + static_cast<std::size_t>(support.first) * kChannels * kLanes;
    Sums red = Sums{} + kHalf, green = red, blue = red;
    for (int i = 0; i < support.count; ++i, at += kChannels * kLanes) {
      red += widened(load(at)) * weights[i];
      green += widened(load(at + kLanes)) * weights[i];
      blue += widened(load(at + 2 * kLanes)) * weights[i];
    }
    for (const auto* sums : {&red, &green, &blue}) {
      const auto pixels = rounded(*sums);
      std::memcpy(to, &pixels, sizeof pixels);
      to += kLanes;
    }
  }
}

/// Computes a row of the target from `count` rows of `size` bytes, `step` bytes apart.
MILLRACE_FOR_VECTORS
void mix_rows(const std::uint8_t* from, std::size_t step, const std::int32_t* weights, int count,
              std::uint8_t* to, std::size_t size) {
  constexpr std::size_t kTogether = 4;
  std::size_t i = 0;
  for (; i + kTogether * kLanes <= size; i += kTogether * kLanes) {
    std::array<Sums, kTogether> sums;
    sums.fill(Sums{} + kHalf);
    const auto* at = from + i;
    for (int row = 0; row < count; ++row, at += step)
      for (std::size_t k = 0; k < kTogether; ++k)
        sums[k] += widened(load(at + k * kLanes)) * weights[row];
    for (std::size_t k = 0; k < kTogether; ++k) {
      const auto pixels = rounded(sums[k]);
      std::memcpy(to + i + k * kLanes, &pixels, sizeof pixels);
    }
  }
  for (; i < size; ++i) {
    std::int32_t sum = kHalf;
    for (int row = 0; row < count; ++row)
      sum += from[static_cast<std::size_t>(row) * step + i] * weights[row];
    to[i] = static_cast<std::uint8_t>(std::min(sum >> kPrecision, 255));
  }
}

void resize_rows(const cv::Mat& image, cv::Mat& target) {
  const auto filter = triangles(image.cols, target.cols);
  const auto bytes_of = [](int cols) { return static_cast<std::size_t>(cols) * kChannels; };
  const auto padded = [](std::size_t size) { return (size + kLanes - 1) / kLanes * kLanes; };
  const auto from = bytes_of(image.cols), to = bytes_of(target.cols);
  std::vector<std::uint8_t> columns(padded(from) * kLanes), mixed(padded(to) * kLanes);
  for (int y = 0; y < image.rows; y += static_cast<int>(kLanes)) {
    const auto count = std::min(static_cast<int>(kLanes), image.rows - y);
    std::array<const std::uint8_t*, kLanes> sources;
    std::array<std::uint8_t*, kLanes> targets{};
    for (int r = 0; r < static_cast<int>(kLanes); ++r)
      sources[static_cast<std::size_t>(r)] = image.ptr(y + std::min(r, count - 1));
    for (int r = 0; r < count; ++r) targets[static_cast<std::size_t>(r)] = target.ptr(y + r);
    to_columns(sources, from, columns.data());
    mix_columns(columns.data(), filter, mixed.data());
    to_rows(mixed.data(), to, targets, static_cast<std::size_t>(count));
  }
}

void resize_columns(const cv::Mat& image, cv::Mat& target) {
  const auto filter = triangles(image.rows, target.rows);
  for (int y = 0; y < target.rows; ++y) {
    const auto& support = filter.supports[static_cast<std::size_t>(y)];
    mix_rows(image.ptr(support.first), image.step[0], filter.weights.data() + support.weights,
             support.count, target.ptr(y), static_cast<std::size_t>(target.cols) * kChannels);
  }
}

}  // namespace

void resize_antialiased(const cv::Mat& image, cv::Mat& target) {
  if (image.empty() || target.empty() || image.type() != CV_8UC3 || target.type() != CV_8UC3)
    throw std::invalid_argument("resize_antialiased: expected non-empty 8-bit RGB images");
  if (image.cols == target.cols) {
    if (image.rows == target.rows)
      image.copyTo(target);
    else
      resize_columns(image, target);
    return;
  }
  if (image.rows == target.rows) return resize_rows(image, target);
  const auto lost = image.rows - target.rows;
  if (lost > 0 && lost > 2 * (image.cols - target.cols)) {
    cv::Mat low(target.rows, image.cols, CV_8UC3);
    resize_columns(image, low);
    resize_rows(low, target);
  } else {
    cv::Mat wide(image.rows, target.cols, CV_8UC3);
    resize_rows(image, wide);
    resize_columns(wide, target);
  }
}

}  // namespace millrace
