// Which of their candidates (anchors, regions) the images of a batch are trained on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "millrace/base/random.h"

namespace millrace {

/// What is drawn from the candidates of N images, uniformly without replacement.
struct Lot {
  at::Tensor label;         // (N, P) int8, as Matches::label
  std::int64_t foreground;  // most of each image
  std::int64_t all;         // most of each image, background included
  std::function<Rng(std::size_t image)> rng;
};

/// `all` candidates, of which at most `all * fraction` are foreground.
Lot lot_of(at::Tensor label, std::int64_t all, double fraction,
           std::function<Rng(std::size_t image)> rng);

struct DrawnCount {
  std::int64_t foreground = 0, background = 0;

  std::int64_t all() const { return foreground + background; }
};

/// Image after image, each image's foreground first, both in the order of the candidates: R of
/// them, F in the foreground.
struct Drawn {
  std::vector<DrawnCount> counts;  // (N), on the host
  at::Tensor rows;                 // (R) int64: places among the N P candidates
  at::Tensor image;                // (R) int64
  at::Tensor slots;                // (R) int64: places among N longest() slots, an image's together
  at::Tensor foreground;           // (F) int64: places among the R

  /// The most that an image has.
  std::int64_t longest() const;
};

/// Draws from each lot; the same on every device. All lots together make the host wait for the
/// device once, for the numbers of labels, and send what was drawn in one copy.
std::vector<Drawn> draw(const std::vector<Lot>& lots);

}  // namespace millrace
