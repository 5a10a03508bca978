// Cost of operations on one mask. The objects are polygons of 24 points in a 640 x 480 image. The
// lower bound is the time to write the bytes of a bitmap once.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {
namespace {

constexpr std::uint32_t kHeight = 480, kWidth = 640;
constexpr int kSide = 28;  // width and height of a detector's masks

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

std::vector<std::uint8_t> bitmap(std::size_t{kHeight} * kWidth);

/// Times `work(i)` for one object after another.
template <typename F>
void add(const char* name, F work) {
  benchmark::RegisterBenchmark(name, [work](benchmark::State& state) {
    std::size_t i = 0;
    for (auto _ : state) {
      benchmark::DoNotOptimize(work(i));
      i = (i + 1) % objects().masks.size();
    }
  });
}

void add_all() {
  add("floor_of_a_bitmap",
      [](std::size_t i) { return std::memset(bitmap.data(), static_cast<int>(i), bitmap.size()); });
  add("encode_bitmap",
      [](std::size_t i) { return encode(objects().bitmaps[i].data(), kHeight, kWidth); });
  add("decode_bitmap", [](std::size_t i) {
    decode(objects().masks[i], bitmap.data());
    return bitmap.data();
  });
  add("encode_text", [](std::size_t i) { return encode_counts(objects().masks[i]); });
  add("decode_text",
      [](std::size_t i) { return decode_counts(objects().texts[i], kHeight, kWidth); });
  add("rasterize", [](std::size_t i) {
    return from_polygons({&objects().polygons[i], 1}, kHeight, kWidth);
  });
  add("paste_28x28", [](std::size_t i) {
    return paste(objects().probabilities.data(), kSide, objects().boxes[i], kHeight, kWidth);
  });
  add("merge_8",
      [](std::size_t i) { return merge(std::span(objects().masks).subspan(i % 57, 8)); });
  add("iou_64", [](std::size_t i) {  // of one mask and all masks
    return mask_iou({&objects().masks[i], 1}, objects().masks, {});
  });
}

}  // namespace
}  // namespace millrace::coco

int main(int argc, char** argv) {
  millrace::coco::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
