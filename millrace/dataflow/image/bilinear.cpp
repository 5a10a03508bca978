// With SSE2, which every x86-64 has; elsewhere OpenCV does it.
// Rows first: a row of the image becomes a row of 15-bit numbers as wide as the target; two of
// these make a row of the target. The last two are kept: neighbouring rows mostly need them.
#include "millrace/dataflow/image/bilinear.h"

#include <stdexcept>

#ifdef __SSE2__
#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>
#else
#include <opencv2/imgproc.hpp>
#endif

namespace millrace {

#ifdef __SSE2__
namespace {

constexpr int kChannels = 3;
constexpr int kRead = 8;  // bytes that `widen` reads at a time: two pixels and two bytes more
constexpr float kOne = 2048;

/// A place between two neighbours, `first` and the next: weights of 11 bits.
struct Tap {
  std::int32_t first = 0;
  std::array<std::int16_t, 2> weights = {};
};

/// Where `to` pixels lie among `from`, in OpenCV's arithmetic: double, then float.
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

/// The same, as bytes of a row, with all weight on the border where a place lies beyond it, and
/// counted from the right where the row is to be mirrored.
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

/// One row of the image at the target's width, in sixteenths of 11 bits: 0 .. 32640.
/// `row` is readable for kRead bytes from its last pixel; `out` has room for a value more.
void widen(const std::uint8_t* row, const std::vector<Tap>& columns, std::int16_t* out) {
  for (const auto& [first, weights] : columns) {
    const auto* pixel = row + first;
    const auto zero = _mm_setzero_si128();
    const auto bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixel));
    const auto pairs =  // R R' G G' B B' of the pixel and the next
        _mm_unpacklo_epi8(_mm_unpacklo_epi8(bytes, _mm_srli_epi64(bytes, 8 * kChannels)), zero);
    std::int32_t both = 0;
    std::memcpy(&both, weights.data(), sizeof both);
    const auto sums = _mm_srli_epi32(_mm_madd_epi16(pairs, _mm_set1_epi32(both)), 4);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packs_epi32(sums, sums));
    out += kChannels;
  }
}

/// One row of the target from two widened ones.
void blend(const std::int16_t* upper, const std::int16_t* lower,
           const std::array<std::int16_t, 2>& weights, std::uint8_t* out, int size) {
  const auto upper_weight = _mm_set1_epi16(weights[0]), lower_weight = _mm_set1_epi16(weights[1]);
  const auto eight = [&](int at) {
    const auto load = [at](const std::int16_t* row) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + at));
    };
    const auto sum = _mm_add_epi16(_mm_mulhi_epi16(load(upper), upper_weight),
                                   _mm_mulhi_epi16(load(lower), lower_weight));
    return _mm_srai_epi16(_mm_add_epi16(sum, _mm_set1_epi16(2)), 2);
  };
  int i = 0;
  for (; i + 16 <= size; i += 16)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm_packus_epi16(eight(i), eight(i + 8)));
  for (; i < size; ++i)
    out[i] = static_cast<std::uint8_t>(
        ((upper[i] * weights[0] >> 16) + (lower[i] * weights[1] >> 16) + 2) >> 2);
}

/// Rows of the image at the target's width; the two last ones asked for stay.
class WideRows {
 public:
  WideRows(const cv::Mat& image, int width, bool mirrored)
      : image_(image), columns_(columns(image.cols, width, mirrored)) {
    for (auto& row : rows_) row.values.resize(static_cast<std::size_t>(width) * kChannels + 1);
  }

  /// Rows `first` and the next, borders repeated; valid until the next call.
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
      widen(readable(y), columns_, row.values.data());
      row.y = y;
    }
    return row.values.data();
  }

  /// Row `y`, or a copy if there may be nothing to read after it.
  const std::uint8_t* readable(int y) {
    const auto size = static_cast<std::ptrdiff_t>(image_.cols) * kChannels;
    const auto *row = image_.ptr(y), *end = image_.ptr(image_.rows - 1) + size;
    if (end - row >= size + kRead) return row;
    copy_.resize(static_cast<std::size_t>(size + kRead));
    std::memcpy(copy_.data(), row, static_cast<std::size_t>(size));
    return copy_.data();
  }

  struct Row {
    int y = -1;
    std::vector<std::int16_t> values;
  };
  const cv::Mat& image_;
  const std::vector<Tap> columns_;
  std::array<Row, 2> rows_;
  std::vector<std::uint8_t> copy_;
};

}  // namespace
#endif

void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored) {
  if (image.empty() || target.empty() || image.type() != CV_8UC3 || target.type() != CV_8UC3)
    throw std::invalid_argument("resize_bilinear: takes 8-bit RGB images that are not empty");
#ifdef __SSE2__
  WideRows rows(image, target.cols, mirrored);
  const auto places = taps(image.rows, target.rows);
  for (int y = 0; y < target.rows; ++y) {
    const auto& [first, weights] = places[static_cast<std::size_t>(y)];
    const auto [upper, lower] = rows.from(first);
    blend(upper, lower, weights, target.ptr(y), target.cols * kChannels);
  }
#else
  cv::Mat source = image;
  if (mirrored) cv::flip(image, source = cv::Mat(), 1);
  cv::resize(source, target, target.size(), 0, 0, cv::INTER_LINEAR);
#endif
}

}  // namespace millrace
