// Whether two variants differ, from AP of the same seeds over the same images. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "millrace/coco/analysis/bootstrap.h"
#include "millrace/study/seed_bootstrap.h"
#include "millrace/study/seed_noise.h"

namespace millrace::study {

/// A variant against the first one, in boxes or in masks.
struct Difference {
  std::size_t variant = 0;            // position among the variants
  std::string figure;                 // "bbox/AP"
  std::vector<std::int64_t> seeds;    // of both
  std::vector<double> by_seed;        // (seeds) AP of the variant less that of the first
  double ap = 0, first_ap = 0;        // means over these seeds
  Noise noise;                        // of the difference
  coco::Interval interval{0, 0, 0};   // over seeds and images; of one seed over images
  double p = 1;                       // belongs to `interval`
  coco::Interval bootstrap{0, 0, 0};  // resampled seeds and images
  double bootstrap_p = 1;

  bool has_several_seeds() const { return by_seed.size() > 1; }
  bool is_real() const { return p < kAlpha; }
};

/// AP of both by seed, in the same order. `one_seed_p`: p of a single seed, of which only the
/// images can tell. Leaves `variant`, `figure` and `seeds` as they are. REQUIRES: a seed.
Difference difference_of(const std::vector<ApDraws>& variant, const std::vector<ApDraws>& first,
                         double one_seed_p = 1);

/// "+0.52 AP (34.64 against 34.12) over 5 seeds, 95 % interval +0.11 .. +0.93, p = 0.021: real, it
/// is better. ...", then how large a difference so many seeds show, and how many seeds one of this
/// size takes. Text; `images`: that AP is of.
std::string sentence(const Difference& difference, std::size_t images);

}  // namespace millrace::study
