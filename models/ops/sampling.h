// Samples the candidates (anchors, regions) of a batch's images for training.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "millrace/base/random.h"

namespace millrace {

/// A sampling task: labelled candidates of N images, to be sampled uniformly without replacement.
struct SamplingTask {
  at::Tensor label;         // (N, P) int8, as Matches::label
  std::int64_t foreground;  // maximum per image
  std::int64_t all;         // maximum per image, background included
  std::function<Rng(std::size_t image)> rng;
};

/// Makes a task of `all` candidates per image, at most `all * fraction` of them foreground.
SamplingTask make_sampling_task(at::Tensor label, std::int64_t all, double fraction,
                                std::function<Rng(std::size_t image)> rng);

struct SampleCount {
  std::int64_t foreground = 0, background = 0;

  std::int64_t all() const { return foreground + background; }
};

/// The R sampled candidates, F of them foreground: image after image, each image's foreground
/// first, then in the order of the candidates.
struct SampledCandidates {
  std::vector<SampleCount> counts;  // (N), on the host
  at::Tensor rows;                  // (R) int64: indices among the N P candidates
  at::Tensor image;                 // (R) int64
  at::Tensor slots;                 // (R) int64: indices among N longest() slots, grouped by image
  at::Tensor foreground;            // (F) int64: indices among the R

  /// Returns the maximum count of an image.
  std::int64_t longest() const;
};

/// Samples each task, with the same result on every device. Synchronizes with the device once for
/// all tasks, to read the counts of labels, and uploads the samples in one copy.
std::vector<SampledCandidates> sample_candidates(const std::vector<SamplingTask>& tasks);

}  // namespace millrace
