#pragma once

#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Simple Copy-Paste (Ghiasi et al. 2021): puts some objects of another image, cut out along their
/// masks, on top of this one. The other image is cut or padded to the size of this one; each of its
/// objects that has a shape and is no crowd is taken by an even chance, and at least one. Objects
/// below lose the pixels that are covered. No blending: it made no difference there. It takes one
/// partner, by chance.
struct CopyPaste {
  static constexpr std::string_view kName = "copy_paste";
  static constexpr std::string_view kAfter = "decode";
  double probability = 0.5;
  Visibility visibility;

  /// 1 or 0 further samples.
  std::size_t partners(const Sample& sample, Rng& rng) const;
  Sample operator()(Sample sample, std::vector<Sample> others, Rng& rng) const;

  /// Which objects of `other` are pasted.
  std::vector<bool> draw(const Instances& other, Rng& rng) const;
  /// Pastes the `chosen` objects of `other`, whose image is of the same size, on `sample`; those
  /// without a pixel are left out. Throws std::invalid_argument for another size.
  Sample paste(Sample sample, Sample other, const std::vector<bool>& chosen) const;

  void describe(Options& o) {
    o.add("probability", probability, "chance to paste objects on an image", {.min = 0, .max = 1});
    visibility.describe(o);
  }
};

}  // namespace millrace
