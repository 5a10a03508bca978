// Images with objects as pictures of a page's gallery.
#pragma once

#include <opencv2/core/types.hpp>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/page/gallery.h"

namespace millrace::cli {

/// How far outlines may be off, in pixels of an image of this size, so that nobody sees it on a
/// thumbnail of `side` pixels.
double outline_tolerance(cv::Size image, int side);

/// The edge of a shape as an SVG path; "" without a shape. See coco::outline_path.
std::string outline_of(const coco::Segmentation& shape, double tolerance);

/// Annotated objects, boxes and shapes in pixels of one image; crowds are noted as such.
std::vector<page::Shape> annotated(const Instances& objects, double tolerance);

}  // namespace millrace::cli
