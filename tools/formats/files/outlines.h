// Polygons around masks, and several polygons as one.
#pragma once

#include <span>
#include <vector>

#include "millrace/coco/masks/masks.h"

namespace millrace::formats {

/// The loops along the sides of a mask's pixels, outer ones and those of holes, with corners only
/// where they turn. Filled by even and odd, they are the mask again.
std::vector<coco::Polygon> outlines_of(const coco::Rle& mask);

/// One polygon that goes through all of them, over bridges there and back between corners that
/// lie close. Filled by even and odd it covers what they do one by one. REQUIRES: at least one.
coco::Polygon bridged(std::span<const coco::Polygon> polygons);

}  // namespace millrace::formats
