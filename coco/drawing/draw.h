// Draws objects over an image. Images are (H, W, 3) 8-bit RGB. Thread-safe.
#pragma once

#include <filesystem>
#include <opencv2/core.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// An object to draw.
struct Overlay {
  Box box;           // in pixels of the image
  int label = 0;     // position in the list of names; determines the colour
  float score = -1;  // 0 .. 1; < 0 = ground truth, drawn without a score
  bool crowd = false;
  Rle mask;  // of the image's size; empty counts = box only
};

/// Returns a bright colour for a label, the same in all runs and data sets.
cv::Vec3b label_colour(int label);

/// Returns a copy of the image with translucent masks, outlines, boxes, and "name score" beside
/// each box where it hides least. For legible text, small images are first enlarged to a shorter
/// side of 480 pixels, limited to a longer side of 1920.
cv::Mat draw_objects(const cv::Mat& image, std::span<const Overlay> objects,
                     std::span<const std::string> names);

/// Returns two pictures next to each other, each below its title.
cv::Mat side_by_side(const cv::Mat& left, std::string_view left_title, const cv::Mat& right,
                     std::string_view right_title);

/// Returns one picture above the other, on the same background.
cv::Mat above(const cv::Mat& top, const cv::Mat& bottom);

/// Returns the annotations of an image as objects to draw. Labels are positions in
/// `truth.categories`.
std::vector<Overlay> overlays(const Dataset& truth, const Image& image);

/// Writes a picture atomically as .jpg or .png; shrinks one that is too large for JPEG. Throws
/// Error.
void write_picture(const std::filesystem::path& file, const cv::Mat& picture);

}  // namespace millrace::coco
