// A row of the image is first resized to a row of 15-bit numbers as wide as the target; two of
// these give a row of the target. The last two are stored, since neighbouring rows mostly share
// them. On processors other than x86-64 OpenCV is used.
#include "millrace/dataflow/image/bilinear.h"

#include <tbb/cache_aligned_allocator.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "millrace/dataflow/image/bilinear_kernel.h"

namespace millrace {
namespace {

constexpr int kChannels = 3;
constexpr float kOne = 2048;
constexpr std::uint8_t kNothing = 0x80;

/// A position between the pixels `first` and first + 1, with weights of 11 bits.
struct Tap {
  std::int32_t first = 0;
  std::array<std::int16_t, 2> weights = {};
};

/// Returns the positions of `to` pixels among `from`, in OpenCV's arithmetic: double, then float.
std::vector<Tap> taps(int from, int to) {
  std::vector<Tap> result;
  result.reserve(static_cast<std::size_t>(to));
  const double scale = 1. / (static_cast<double>(to) / from);
  for (int i = 0; i < to; ++i) {
    const auto place = static_cast<float>((i + 0.5) * scale - 0.5);
    const auto first = static_cast<std::int32_t>(std::floor(place));
    const float part = place - static_cast<float>(first);
    const auto weight = [](float w) { return static_cast<std::int16_t>(std::lrint(w * kOne)); };
    result.push_back({first, {weight(1.F - part), weight(part)}});
  }
  return result;
}

/// Returns positions as byte offsets in a row, with all weight on the border for a position beyond
/// it, and counted from the right if `mirrored`.
std::vector<Tap> columns(int from, int to, bool mirrored) {
  auto result = taps(from, to);
  for (auto& [first, weights] : result) {
    const bool beyond = first < 0 || first >= from - 1;
    if (beyond) {
      first = std::clamp(first, 0, from - 1);
      weights = {static_cast<std::int16_t>(kOne), 0};
    }
    if (mirrored) first = from - (beyond ? 1 : 2) - first;
    if (mirrored && !beyond) std::swap(weights[0], weights[1]);
    first *= kChannels;
  }
  return result;
}

/// Memory aligned to cache lines, since 64-byte loads that cross lines take twice the time.
template <class T>
using Lines = std::vector<T, tbb::cache_aligned_allocator<T>>;

/// A kernel and its windows for one width of the image and one of the target.
class Widening {
 public:
  /// Selects the first kernel that accepts these widths.
  Widening(std::span<const BilinearKernel> kernels, int from, int to, bool mirrored) {
    const auto places = columns(from, to, mirrored);
    for (const auto& kernel : kernels)
      if (takes(kernel, places, from * kChannels)) {
        kernel_ = &kernel;
        return;
      }
    throw std::invalid_argument("resize_bilinear: no kernel supports such images");
  }

  const BilinearKernel& kernel() const { return *kernel_; }
  /// Returns the values that the kernel writes, at least three times the target's width.
  std::size_t values() const {
    return starts_.size() * static_cast<std::size_t>(kernel_->values) + 1;
  }
  void operator()(const std::uint8_t* row, std::int16_t* out) const {
    kernel_->widen(row, {starts_.size(), starts_.data(), picks_.data(), weights_.data()}, out);
  }

 private:
  /// Makes the plan for this kernel; returns false unless each window contains all bytes that it
  /// needs and is inside the row.
  bool takes(const BilinearKernel& kernel, const std::vector<Tap>& places, int row) {
    const auto values = static_cast<std::size_t>(kernel.values);
    const auto together = values * static_cast<std::size_t>(kernel.together);
    const auto size = places.size() * kChannels;
    const auto padded = (size + together - 1) / together * together;
    starts_.assign(padded / values, 0);
    picks_.assign(4 * padded, kNothing);
    weights_.assign(2 * padded, 0);
    if (row < kernel.window && kernel.reads_after == 0) return false;
    for (std::size_t begin = 0; begin < size; begin += values) {
      const auto end = std::min(begin + values, size);
      // Positions are monotonic, so the first or the last pixel is the leftmost.
      auto start = std::min(places[begin / kChannels].first, places[(end - 1) / kChannels].first);
      if (kernel.reads_after == 0) start = std::min(start, row - kernel.window);
      starts_[begin / values] = start;
      for (auto i = begin; i < end; ++i) {
        const auto& place = places[i / kChannels];
        const auto at = place.first - start + static_cast<int>(i % kChannels);
        const auto next = at + (place.weights[1] != 0 ? kChannels : 0);
        if (next >= kernel.window) return false;
        picks_[4 * i] = static_cast<std::uint8_t>(at);
        picks_[4 * i + 2] = static_cast<std::uint8_t>(next);
        weights_[2 * i] = place.weights[0];
        weights_[2 * i + 1] = place.weights[1];
      }
    }
    return true;
  }

  const BilinearKernel* kernel_ = nullptr;
  std::vector<std::int32_t> starts_;
  Lines<std::uint8_t> picks_;
  Lines<std::int16_t> weights_;
};

/// Rows of the image at the target's width; the two requested last are stored.
class WideRows {
 public:
  WideRows(const cv::Mat& image, const Widening& widening) : image_(image), widening_(widening) {
    for (auto& row : rows_) row.values.assign(widening.values(), 0);
  }

  /// Returns row `first` and the next, borders repeated; valid until the next call.
  std::pair<const std::int16_t*, const std::int16_t*> from(int first) {
    const auto inside = [this](int y) { return std::clamp(y, 0, image_.rows - 1); };
    const int upper = inside(first), lower = inside(first + 1);
    if (rows_[1].y == upper) std::swap(rows_[0], rows_[1]);
    return {row(0, upper), lower == upper ? row(0, upper) : row(1, lower)};
  }

 private:
  const std::int16_t* row(std::size_t slot, int y) {
    auto& row = rows_[slot];
    if (row.y != y) {
      widening_(readable(y), row.values.data());
      row.y = y;
    }
    return row.values.data();
  }

  /// Returns row `y`, or a copy if the bytes after it may not be readable.
  const std::uint8_t* readable(int y) {
    const auto size = static_cast<std::ptrdiff_t>(image_.cols) * kChannels;
    const auto after = widening_.kernel().reads_after;
    const auto *row = image_.ptr(y), *end = image_.ptr(image_.rows - 1) + size;
    if (end - row >= size + after) return row;
    copy_.resize(static_cast<std::size_t>(size + after));
    std::memcpy(copy_.data(), row, static_cast<std::size_t>(size));
    return copy_.data();
  }

  struct Row {
    int y = -1;
    Lines<std::int16_t> values;
  };
  const cv::Mat& image_;
  const Widening& widening_;
  std::array<Row, 2> rows_;
  std::vector<std::uint8_t> copy_;
};

void resize_by_opencv(const cv::Mat& image, cv::Mat& target, bool mirrored) {
  cv::Mat source = image;
  if (mirrored) cv::flip(image, source = cv::Mat(), 1);
  cv::resize(source, target, target.size(), 0, 0, cv::INTER_LINEAR);
}

}  // namespace

void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored,
                     std::span<const BilinearKernel> kernels) {
  if (image.empty() || target.empty() || image.type() != CV_8UC3 || target.type() != CV_8UC3)
    throw std::invalid_argument("resize_bilinear: expected non-empty 8-bit RGB images");
  if (kernels.empty()) return resize_by_opencv(image, target, mirrored);
  const Widening widening(kernels, image.cols, target.cols, mirrored);
  WideRows rows(image, widening);
  const auto places = taps(image.rows, target.rows);
  for (int y = 0; y < target.rows; ++y) {
    const auto& [first, weights] = places[static_cast<std::size_t>(y)];
    const auto [upper, lower] = rows.from(first);
    widening.kernel().blend(upper, lower, weights.data(), target.ptr(y),
                            static_cast<std::size_t>(target.cols) * kChannels);
  }
}

void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored) {
  resize_bilinear(image, target, mirrored, bilinear_kernels());
}

}  // namespace millrace
