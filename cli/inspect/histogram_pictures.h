// Histograms as a picture, for terminals and notebooks.
#pragma once

#include <opencv2/core/mat.hpp>
#include <span>

#include "millrace/cli/inspect/distributions.h"

namespace millrace::cli {

/// All of them in one picture, two side by side. (H, W, 3) 8-bit RGB.
cv::Mat histogram_picture(std::span<const Distribution> all);

/// A distribution's bins between edges, the first and the last with an edge of their own: what lies
/// below the first edge (nothing) left out, and the highest value at the end.
struct ClosedBins {
  std::vector<double> edges;
  std::vector<std::int64_t> counts;  // one less than edges
};
ClosedBins closed_bins(const Distribution& one);

}  // namespace millrace::cli
