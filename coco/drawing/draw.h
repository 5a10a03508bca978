// Objects drawn over an image, for people. Images are (H, W, 3) 8-bit RGB. Any thread may call it.
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

/// One object to draw.
struct Overlay {
  Box box;           // pixels of the image
  int label = 0;     // position in the list of names; the same label always has the same colour
  float score = -1;  // 0 .. 1; < 0: ground truth, no score is written
  bool crowd = false;
  Rle mask;  // as large as the image; no counts: the box alone
};

/// A bright colour of its own for each label, stable over runs and data sets.
cv::Vec3b label_colour(int label);

/// A copy of the image with translucent masks, outlines, boxes, and "name score" beside each box
/// where it hides least. Small images are first enlarged to a shorter side of 480 pixels, unless
/// the longer one passes 1920, so that the text is legible.
cv::Mat draw_objects(const cv::Mat& image, std::span<const Overlay> objects,
                     std::span<const std::string> names);

/// Two pictures next to each other, each under its title.
cv::Mat side_by_side(const cv::Mat& left, std::string_view left_title, const cv::Mat& right,
                     std::string_view right_title);

/// One picture above the other, on the same ground.
cv::Mat above(const cv::Mat& top, const cv::Mat& bottom);

/// The annotations of an image as objects to draw; labels are positions in `truth.categories`.
std::vector<Overlay> overlays(const Dataset& truth, const Image& image);

/// Writes a picture atomically as .jpg or .png; one too large for a JPEG is shrunk. Throws Error.
void write_picture(const std::filesystem::path& file, const cv::Mat& picture);

}  // namespace millrace::coco
