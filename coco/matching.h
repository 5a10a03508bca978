// The first half of the evaluation: which detections hit an object, at each threshold and for each range of areas.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "coco/evaluate.h"

namespace millrace::coco {

inline constexpr std::size_t kThresholds = 10, kAreas = 4;
inline constexpr std::uint32_t kMostDetections =
    100;  // of an image and category; the rest are left out

/// numpy's linspace, to the bit: the ninth of .5, .55, ... .95 is 0.8999999999999999.
template <std::size_t N>
constexpr std::array<double, N> linspace(double start, double stop) {
  std::array<double, N> values{};
  const double step = (stop - start) / static_cast<double>(N - 1);
  for (std::size_t i = 0; i + 1 < N; ++i) values[i] = start + static_cast<double>(i) * step;
  values[N - 1] = stop;
  return values;
}
inline constexpr auto kIouThresholds = linspace<kThresholds>(.5, .95);

/// A detection in one range of areas; bit t speaks of threshold t.
struct Outcome {
  std::uint16_t hit = 0;
  std::uint16_t ignored = 0;  // neither right nor wrong
};

/// A scored detection. They stand by category, image, and falling score.
struct Scored {
  double score;
  std::uint32_t rank;  // within its image and category
  std::array<Outcome, kAreas> outcomes;
};

struct Matches {
  std::vector<Scored> detections;
  std::vector<std::size_t> first;  // (K + 1) where each category's detections begin
  std::vector<std::array<std::int64_t, kAreas>> truths;  // (K) objects that count
};

/// pycocotools' order of scores: falling, NaN last.
inline bool scores_higher(double a, double b) { return a > b || (b != b && a == a); }

/// Runs in the calling thread's arena. The same for any number of threads.
Matches match(const Dataset& truth, std::span<const Detection> detections,
              const EvaluateOptions& options, std::span<const std::int64_t> image_ids);

}  // namespace millrace::coco
