// The text of one YOLO label file.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "millrace/tools/formats/files/texts.h"

namespace millrace::formats {

/// A line: a class and the numbers after it, shares of the image's width and height by turns.
struct YoloLabel {
  int line = 0;
  long long category = 0;      // from 0
  bool polygon = false;        // x y of each corner; else centre x, centre y, width, height
  bool has_keypoints = false;  // after the box; left out of `numbers`
  std::vector<double> numbers;
};

struct YoloFile {
  std::vector<YoloLabel> labels;
  std::vector<LineFault> faults;
};

/// `keypoint_numbers`: how many numbers follow a box (`kpt_shape` of data.yaml). Any text.
YoloFile parse_yolo(std::string_view text, std::size_t keypoint_numbers = 0);

}  // namespace millrace::formats
