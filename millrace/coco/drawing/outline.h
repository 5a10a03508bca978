// The edges of objects as SVG paths, for pages. Pure; any thread.
#pragma once

#include <string>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// The edge of a shape in pixels of its image, no point further off than about `tolerance` pixels:
/// each part of it, and each hole, by "M", "L" and "z". "" without a shape, or without a pixel.
std::string outline(const Segmentation& shape, double tolerance);

}  // namespace millrace::coco
