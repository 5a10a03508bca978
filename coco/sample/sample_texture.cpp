#include "millrace/coco/sample/sample_texture.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>
#include <utility>

namespace millrace::coco {
namespace {

using std::numbers::pi_v;

struct Hsv {
  double hue, saturation, value;  // 0..6, 0..1, 0..1
};

Colour from_hsv(const Hsv& hsv) {
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hsv.hue, 6.0), drop = std::clamp(std::min(k, 4 - k), 0.0, 1.0);
    return static_cast<float>(hsv.value * (1 - hsv.saturation * drop));
  };
  return {channel(1), channel(3), channel(5)};
}

/// Returns the perceived difference of two colours, about 0..1; brightness counts more than hue.
double contrast(const Colour& a, const Colour& b) {
  const auto d = a - b;
  return std::sqrt(0.2 * d[0] * d[0] + 0.45 * d[1] * d[1] + 0.35 * d[2] * d[2]);
}

/// Returns the first of up to 12 random vivid colours with the wanted contrast to the ground,
/// otherwise the one with the highest contrast.
Colour draw_vivid(const Material& ground, double wanted, Rng& rng) {
  Colour best;
  double most = -1;
  for (int i = 0; i < 12 && most < wanted; ++i) {
    const auto colour =
        from_hsv({rng.uniform(0, 6), rng.uniform(0.35, 1.0), std::sqrt(rng.uniform(0.05, 1.0))});
    const double least = std::min(contrast(colour, ground.first), contrast(colour, ground.second));
    if (least > most) {
      best = colour;
      most = least;
    }
  }
  return best;
}

/// Returns a square wave of period 1 with soft edges, 0..1.
float soft_wave(float x) {
  return std::clamp(0.5F + 4 * (std::abs(2 * (x - std::floor(x)) - 1) - 0.5F), 0.0F, 1.0F);
}

/// Returns a fixed random number in 0..1 for a cell of a pattern.
float cell_value(std::uint64_t key, float cell) {
  return static_cast<float>(
             mix(key + static_cast<std::uint64_t>(static_cast<std::int64_t>(cell))) >> 40) *
         0x1.0p-24F;
}

/// Returns the share of the second colour at (u, v), in periods; `n` is the noise at that point.
float blend(Pattern pattern, float u, float v, float n, std::uint64_t key) {
  switch (pattern) {
    case Pattern::mottled:
      return std::clamp(0.5F + 0.9F * n, 0.0F, 1.0F);
    case Pattern::marble:
      return 0.5F + 0.5F * std::sin(2 * pi_v<float> * u + 5 * n);
    case Pattern::wood:
      return 0.5F + 0.5F * std::sin(9 * (u + 0.12F * std::sin(0.6F * v) + 0.25F * n));
    case Pattern::stripes:
      return soft_wave(u + 0.12F * n);
    case Pattern::checks: {
      const float a = soft_wave(u + 0.1F * n), b = soft_wave(v + 0.1F * n);
      return a + b - 2 * a * b;
    }
    case Pattern::dots: {
      const float x = u - std::floor(u) - 0.5F, y = v - std::floor(v) - 0.5F;
      return std::clamp(0.5F + 8 * (0.3F - std::sqrt(x * x + y * y)), 0.0F, 1.0F);
    }
    case Pattern::boards: {
      const float board = std::floor(u), seam = std::min(u - board, 1 - (u - board));
      const float shade = 0.7F * cell_value(key, board) +
                          0.15F * std::sin(25 * (u + 0.1F * std::sin(0.5F * v)) + 4 * n);
      return seam < 0.03F ? 1.6F : std::clamp(shade + 0.15F, 0.0F, 1.0F);
    }
  }
  return 0;
}

}  // namespace

Material draw_ground(Rng& rng) {
  constexpr Pattern patterns[] = {Pattern::mottled, Pattern::mottled, Pattern::marble,
                                  Pattern::wood,    Pattern::stripes, Pattern::checks,
                                  Pattern::boards,  Pattern::boards};
  const Pattern pattern = patterns[rng.below(std::size(patterns))];
  const double hue = rng.uniform(0, 6), saturation = rng.uniform(0.04, 0.5),
               value = rng.uniform(0.25, 0.85);
  const double change = rng.uniform(0.06, 0.18) * (value > 0.5 ? -1 : 1);
  Colour first = from_hsv({hue, saturation, value}),
         second = from_hsv({std::fmod(hue + rng.uniform(0, 0.7), 6.0),
                            saturation * rng.uniform(0.6, 1.2), value + change});
  // The seams of boards are dark.
  if (pattern == Pattern::boards && change > 0) std::swap(first, second);
  return {pattern,
          first,
          second,
          rng.uniform(0, pi_v<double>),
          rng.uniform(22, 60),
          rng.uniform(0.1, 0.5)};
}

Material draw_surface(const Material& ground, double side, Rng& rng) {
  constexpr Pattern patterns[] = {Pattern::mottled, Pattern::marble, Pattern::wood,
                                  Pattern::stripes, Pattern::checks, Pattern::dots};
  const Pattern pattern = patterns[rng.below(std::size(patterns))];
  const Colour first = draw_vivid(ground, 0.3, rng);
  // A subtle second colour, or two distinct ones.
  const double share = rng.chance(0.5) ? 0.6 : 0.25;
  return {pattern,
          first,
          share * first + (1 - share) * draw_vivid(ground, 0.25, rng),
          rng.uniform(0, pi_v<double>),
          std::max(5.0, side * rng.uniform(0.15, 0.4)),
          rng.uniform(0.05, 0.4),
          rng.chance(0.5) ? static_cast<float>(rng.uniform(0.2, 0.7)) : 0};
}

cv::Mat1f draw_noise(cv::Size size, double cell, int octaves, Rng& rng) {
  cv::Mat1f total(size, 0.0F), layer;
  float strength = 0.55F;
  for (int i = 0; i < octaves; ++i, strength *= 0.55F, cell /= 2) {
    cell = std::max(cell, 1.0);
    cv::Mat1f lattice(cvCeil(size.height / cell) + 2, cvCeil(size.width / cell) + 2);
    for (auto& value : lattice) value = static_cast<float>(rng.uniform(-1, 1));
    cv::resize(lattice, layer, {cvRound(lattice.cols * cell), cvRound(lattice.rows * cell)}, 0, 0,
               i == 0 ? cv::INTER_CUBIC : cv::INTER_LINEAR);
    // Skips the flat edge of the lattice.
    const cv::Point corner(cvFloor(cell / 2), cvFloor(cell / 2));
    cv::scaleAdd(layer(cv::Rect(corner, size)), strength, total, total);
  }
  return total;
}

cv::Mat3f lay_out(const Material& material, const cv::Mat1f& noise, Rng& rng) {
  const auto key = rng();
  const float across = static_cast<float>(rng.uniform(0, 8)),
              along = static_cast<float>(rng.uniform(0, 8));
  const float cosine = static_cast<float>(std::cos(material.angle) / material.period);
  const float sine = static_cast<float>(std::sin(material.angle) / material.period);
  const float uneven = static_cast<float>(0.5 * material.rough);
  cv::Mat3f picture(noise.size());
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols; ++x) {
      const float u = across + x * cosine + y * sine, v = along - x * sine + y * cosine,
                  n = noise(y, x);
      const float second = blend(material.pattern, u, v, n, key);
      picture(y, x) =
          (material.first + (material.second - material.first) * second) * (1 + uneven * n);
    }
  return picture;
}

}  // namespace millrace::coco
