// How large objects are when a detector sees them.
#pragma once

#include <array>
#include <cstdint>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/doctor/findings.h"

namespace millrace {

/// Bounds between the kinds of size, in pixels: the root of a box's area after the resize.
inline constexpr std::array<double, 3> kSizeBounds = {16, 32, 96};

/// Objects below the first bound, below the second, ... and above the last; crowds and boxes
/// without area do not count.
using SizeCounts = std::array<std::uint64_t, kSizeBounds.size() + 1>;

/// Sizes in images resized to these sides; see shortest_edge_size.
SizeCounts check_sizes(const DataSplit& split, std::int64_t short_side, std::int64_t max_side,
                       coco::Findings& findings);

}  // namespace millrace
