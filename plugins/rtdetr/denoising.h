// Contrastive denoising (Zhang et al. 2023, "DINO"): while training, noisy boxes of the ground
// truth are queries too, and should find their objects again; noisier ones should match none.
// Shapes: N images, G objects, Q queries of the image itself, D denoising queries: `groups` times
// those near `most` objects, then those further away.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/detector/detector.h>
#include <cstdint>
#include <vector>

#include "options.h"

namespace rtdetr {

/// One image's ground truth.
struct Target {
  at::Tensor labels;  // (G) int64
  at::Tensor boxes;   // (G, 4), as in box_forms.h
};

/// The objects that are denoised: all of an image, but of more than `most` only `most`, from a
/// random one of `step.rng` on. Queries see each other, so their cost grows with the square.
std::vector<Target> denoised_of(const std::vector<Target>& targets, std::int64_t most,
                                const millrace::StepInfo& step);

/// How many denoising queries there are.
struct DenoisingShape {
  std::int64_t most = 0;    // denoised objects of an image, over all images of the step
  std::int64_t groups = 0;  // options.num_queries / most, at least 1; 0 = no denoising

  DenoisingShape() = default;
  DenoisingShape(std::int64_t most, const DenoisingOptions& options);
  std::int64_t queries() const { return 2 * most * groups; }
};

/// The random part.
struct DenoisingNoise {
  at::Tensor relabels;  // (N, D) bool: the class becomes that of `labels`
  at::Tensor labels;    // (N, D) int64
  at::Tensor moves;     // (N, D, 4) in (-1, 1): of the corners, in half sides; further by 1 for
                        // those that should match none
};

/// Drawn by `step.rng`, for each image alone.
DenoisingNoise draw_noise(const std::vector<Target>& targets, const DenoisingShape& shape,
                          const DenoisingOptions& options, std::int64_t classes,
                          const millrace::StepInfo& step);

/// What the decoder gets.
struct DenoisingQueries {
  at::Tensor labels;      // (N, D) int64; `classes` where an image has fewer objects
  at::Tensor box_logits;  // (N, D, 4)
};
DenoisingQueries denoising_queries(const std::vector<Target>& targets, const DenoisingShape& shape,
                                   const DenoisingOptions& options, std::int64_t classes,
                                   const DenoisingNoise& noise);

/// (D + Q, D + Q): 0 where a query may see another, else -infinity. Groups see themselves and the
/// image's own queries, which see no group.
at::Tensor denoising_mask(const DenoisingShape& shape, std::int64_t queries);

}  // namespace rtdetr
