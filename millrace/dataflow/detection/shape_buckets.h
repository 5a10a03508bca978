// Which images to batch together so that little is padded: groups of like shape, chosen from the
// data set's own.
#pragma once

#include <cstddef>
#include <opencv2/core/types.hpp>
#include <span>
#include <vector>

namespace millrace {

/// The bounds (ratios of width to height, ascending) that part `shapes` into at most `buckets`
/// groups with the least padding, were every image resized to one shorter side and padded to the
/// largest of its group: an optimal partition by dynamic programming. Pure. REQUIRES: buckets > 0,
/// no empty shape.
std::vector<double> ratio_bounds(std::span<const cv::Size> shapes, std::size_t buckets);

}  // namespace millrace
