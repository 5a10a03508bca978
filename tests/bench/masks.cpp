// What one mask costs: objects of a 640 x 480 image, as polygons of 24 points make them. Floors:
// the bytes of a bitmap written once, the bytes of a text read once.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {
namespace {

constexpr std::uint32_t kHeight = 480, kWidth = 640;
constexpr int kSide = 28;  // side of a detector's masks

struct Objects {
  std::vector<Polygon> polygons;
  std::vector<Rle> masks;
  std::vector<std::string> texts;
  std::vector<std::vector<std::uint8_t>> bitmaps;
  std::vector<Box> boxes;
  std::vector<float> probabilities;

  Objects() {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> x(0, kWidth), y(0, kHeight), size(10, 120),
        ragged(.6, 1);
    for (int i = 0; i < 64; ++i) {
      const double cx = x(random), cy = y(random), radius = size(random);
      Polygon polygon;
      for (int p = 0; p < 24; ++p) {
        const double angle = p * 2 * std::numbers::pi / 24, r = radius * ragged(random);
        polygon.push_back(std::clamp(cx + r * std::cos(angle), 0., double{kWidth}));
        polygon.push_back(std::clamp(cy + r * std::sin(angle), 0., double{kHeight}));
      }
      polygons.push_back(polygon);
      masks.push_back(from_polygons({&polygon, 1}, kHeight, kWidth));
      texts.push_back(encode_counts(masks.back()));
      boxes.push_back(bounding_box(masks.back()));
      bitmaps.emplace_back(std::size_t{kHeight} * kWidth);
      decode(masks.back(), bitmaps.back().data());
    }
    for (int r = 0; r < kSide; ++r)
      for (int c = 0; c < kSide; ++c)
        probabilities.push_back(static_cast<float>(1.2 - std::hypot(r - 13.5, c - 13.5) / 14));
  }
};

const Objects& objects() {
  static const Objects all;
  return all;
}

/// Times `work(i)` for one object after the other.
template <typename F>
void each(benchmark::State& state, F work) {
  const std::size_t count = objects().masks.size();
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(work(i));
    i = (i + 1) % count;
  }
}

std::vector<std::uint8_t>& bitmap() {
  static std::vector<std::uint8_t> bytes(std::size_t{kHeight} * kWidth);
  return bytes;
}

void floor_of_a_bitmap(benchmark::State& state) {
  each(state, [](std::size_t i) {
    return std::memset(bitmap().data(), static_cast<int>(i), bitmap().size());
  });
}
void encode_bitmap(benchmark::State& state) {
  each(state, [](std::size_t i) { return encode(objects().bitmaps[i].data(), kHeight, kWidth); });
}
void decode_bitmap(benchmark::State& state) {
  each(state, [](std::size_t i) {
    decode(objects().masks[i], bitmap().data());
    return bitmap().data();
  });
}
void encode_text(benchmark::State& state) {
  each(state, [](std::size_t i) { return encode_counts(objects().masks[i]); });
}
void decode_text(benchmark::State& state) {
  each(state, [](std::size_t i) { return decode_counts(objects().texts[i], kHeight, kWidth); });
}
void rasterize(benchmark::State& state) {
  each(state, [](std::size_t i) {
    return from_polygons({&objects().polygons[i], 1}, kHeight, kWidth);
  });
}
void paste_28x28(benchmark::State& state) {
  each(state, [](std::size_t i) {
    return paste(objects().probabilities.data(), kSide, objects().boxes[i], kHeight, kWidth);
  });
}
void merge_8(benchmark::State& state) {
  each(state, [](std::size_t i) { return merge(std::span(objects().masks).subspan(i % 57, 8)); });
}
void iou_64(benchmark::State& state) {  // one with all
  each(state, [](std::size_t i) {
    return mask_iou({&objects().masks[i], 1}, objects().masks, {});
  });
}

BENCHMARK(floor_of_a_bitmap);
BENCHMARK(encode_bitmap);
BENCHMARK(decode_bitmap);
BENCHMARK(encode_text);
BENCHMARK(decode_text);
BENCHMARK(rasterize);
BENCHMARK(paste_28x28);
BENCHMARK(merge_8);
BENCHMARK(iou_64);

}  // namespace
}  // namespace millrace::coco

BENCHMARK_MAIN();
