// Images with objects as pictures of a page's gallery.
#pragma once

#include <opencv2/core/mat.hpp>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/page/gallery.h"

namespace millrace::cli {

/// A JPEG of an image (H, W, 3), 8-bit RGB, made smaller if a side is longer than `side` pixels.
std::string thumbnail(const cv::Mat& rgb, int side);

/// How far outlines may be off, in pixels of an image of this size, so that nobody sees it on a
/// thumbnail of `side` pixels.
double outline_tolerance(cv::Size image, int side);

/// Annotated objects, boxes and shapes in pixels of one image; crowds are noted as such.
std::vector<page::Shape> annotated(const Instances& objects, double tolerance);

}  // namespace millrace::cli
