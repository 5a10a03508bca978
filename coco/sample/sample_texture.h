// The sample's surfaces: two colours in a pattern, roughened by noise. Pure; any thread may call.
#pragma once

#include <opencv2/core.hpp>

#include "millrace/base/random.h"

namespace millrace::coco {

/// Blue, green, red, each 0..1 (more is overexposed).
using Colour = cv::Vec3f;

enum class Pattern { mottled, marble, wood, stripes, checks, dots, boards };

struct Material {
  Pattern pattern;
  Colour first, second;
  double angle;     // direction of the pattern, radians
  double period;    // wavelength of the pattern, pixels
  double rough;     // 0..1: relief of the surface, and how uneven its brightness is
  float gloss = 0;  // 0..1: strength of highlights
};

/// A muted material for a ground to lie on.
Material draw_ground(Rng& rng);

/// A material that stands out from the ground; `side` is about the size of the object in pixels.
Material draw_surface(const Material& ground, double side, Rng& rng);

/// Smooth noise of about -1..1: octaves of random lattices, the coarsest of `cell` pixels a cell.
cv::Mat1f draw_noise(cv::Size size, double cell, int octaves, Rng& rng);

/// The material's colours without light; `noise`, of the wanted size, warps and mottles them.
cv::Mat3f lay_out(const Material& material, const cv::Mat1f& noise, Rng& rng);

}  // namespace millrace::coco
