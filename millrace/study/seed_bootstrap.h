// AP of trainings over seeds and images, resampled together: a bootstrap with two levels.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "millrace/coco/analysis/bootstrap.h"

namespace millrace::study {

/// AP of one training over all images and over each draw of them (coco::resample); -1 in a draw
/// that has nothing to find.
struct ApDraws {
  double whole = 0;
  std::vector<double> draws;
};

/// The mean over categories of each draw.
ApDraws ap_draws(const coco::Resamples& resamples);

struct SeedBootstrap {
  coco::Interval interval;  // of the mean difference: the basic one
  /// How often the mean of a draw lies at least as far from the mean as that does from 0. The mean
  /// counts as a draw, so it is never 0.
  double p = 1;
  /// Standard deviation that the choice of the images gives to the mean over these seeds. What it
  /// does to each seed alone is left out, since the seeds' own deviation has that already.
  double images_deviation = 0;
};

/// The mean over seeds of a - b, seed by seed. Draw i takes the images of draw i of every
/// training, and as many seeds as there are, with replacement. With one seed it is the bootstrap
/// over images: the interval is that of coco::compare. Depends on the order of the seeds alone.
/// REQUIRES: a seed; as many of b as of a, and as many draws of each, over the same images.
SeedBootstrap bootstrap(std::span<const ApDraws> a, std::span<const ApDraws> b);

}  // namespace millrace::study
