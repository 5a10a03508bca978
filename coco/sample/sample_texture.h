// The surfaces of the sample's objects: two colours in a pattern, roughened by noise. Pure
// functions; thread-safe.
#pragma once

#include <opencv2/core.hpp>

#include "millrace/base/random.h"

namespace millrace::coco {

/// Blue, green, red, each 0..1; higher values are overexposed.
using Colour = cv::Vec3f;

enum class Pattern { mottled, marble, wood, stripes, checks, dots, boards };

struct Material {
  Pattern pattern;
  Colour first, second;
  double angle;     // direction of the pattern in radians
  double period;    // wavelength of the pattern in pixels
  double rough;     // 0..1: relief of the surface and variation of its brightness
  float gloss = 0;  // 0..1: strength of highlights
};

/// Returns a muted material for the ground.
Material draw_ground(Rng& rng);

/// Returns a material with contrast to the ground. `side` is the approximate size of the object in
/// pixels.
Material draw_surface(const Material& ground, double side, Rng& rng);

/// Returns smooth noise of about -1..1: octaves of random lattices, the coarsest with `cell` pixels
/// per cell.
cv::Mat1f draw_noise(cv::Size size, double cell, int octaves, Rng& rng);

/// Returns the material's colours without light. `noise` has the wanted size and warps and mottles
/// them.
cv::Mat3f lay_out(const Material& material, const cv::Mat1f& noise, Rng& rng);

}  // namespace millrace::coco
