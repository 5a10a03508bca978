// Parser of YOLO label files.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "millrace/tools/formats/files/texts.h"

namespace millrace::formats {

/// A label line: a class and its numbers, alternating fractions of the image's width and height.
struct YoloLabel {
  int line = 0;
  long long category = 0;      // class, from 0
  bool polygon = false;        // true: x, y of each corner; false: centre x, centre y, width,
                               // height
  bool has_keypoints = false;  // true if keypoints follow the box; they are not in `numbers`
  std::vector<double> numbers;
};

struct YoloFile {
  std::vector<YoloLabel> labels;
  std::vector<LineFault> faults;
};

/// Parses a label file; accepts any text. `keypoint_numbers` is the count of numbers after each box
/// (`kpt_shape` of data.yaml).
YoloFile parse_yolo(std::string_view text, std::size_t keypoint_numbers = 0);

}  // namespace millrace::formats
