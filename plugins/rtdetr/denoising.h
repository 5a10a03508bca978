// Contrastive denoising (Zhang et al. 2023, "DINO"): while training, noisy ground truth boxes are
// additional queries. Positive queries should recover their objects; negative ones, with more
// noise, should match no object. Shapes: N images, G objects, Q queries of the image itself, D
// denoising queries. Each of the `groups` groups has up to `most` positive queries, then as many
// negative ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/detector/detector.h>
#include <cstdint>
#include <vector>

#include "options.h"

namespace millrace::rtdetr {

/// One image's ground truth.
struct Target {
  at::Tensor labels;  // (G) int64
  at::Tensor boxes;   // (G, 4), as in box_forms.h
};

/// Returns the objects to denoise: all objects of an image, or `most` consecutive ones from a
/// random object on if it has more (drawn by `step.rng`). The limit exists because the cost of
/// self-attention is quadratic in the number of queries.
std::vector<Target> choose_denoised(const std::vector<Target>& targets, std::int64_t most,
                                    const StepInfo& step);

/// Number of denoising queries.
struct DenoisingShape {
  std::int64_t most = 0;    // largest number of denoised objects of an image of the step
  std::int64_t groups = 0;  // options.num_queries / most, at least 1; 0 = no denoising

  DenoisingShape() = default;
  DenoisingShape(std::int64_t most, const DenoisingOptions& options);
  std::int64_t queries() const { return 2 * most * groups; }
};

/// The random numbers of the denoising queries.
struct DenoisingNoise {
  at::Tensor relabels;  // (N, D) bool: true if the class is replaced by that of `labels`
  at::Tensor labels;    // (N, D) int64
  /// (N, D, 4), in half sides: in (-1, 1) for positive queries, 1 further for negative ones
  at::Tensor corner_shifts;
};

/// Draws the noise of each image from its own stream of `step.rng`.
DenoisingNoise draw_noise(const std::vector<Target>& targets, const DenoisingShape& shape,
                          const DenoisingOptions& options, std::int64_t classes,
                          const StepInfo& step);

/// The denoising queries as input of the decoder.
struct DenoisingQueries {
  at::Tensor labels;      // (N, D) int64; `classes` for padding, if an image has fewer objects
  at::Tensor box_logits;  // (N, D, 4)
};
DenoisingQueries denoising_queries(const std::vector<Target>& targets, const DenoisingShape& shape,
                                   const DenoisingOptions& options, std::int64_t classes,
                                   const DenoisingNoise& noise);

/// Returns the attention mask (D + Q, D + Q): 0 if a query may attend to another, else -infinity.
/// Queries of a group attend to this group and to the image's own queries, which do not attend to
/// any group.
at::Tensor denoising_mask(const DenoisingShape& shape, std::int64_t queries);

}  // namespace millrace::rtdetr
