// Images with detections and annotations as the viewer's JSON (tools/report/README.md). Pure and
// thread-safe.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "millrace/tools/report/outlines.h"

namespace millrace::report {

struct Shape {
  enum Kind { found, annotated };

  int category = 0;            // index in Gallery::categories
  double score = 1;            // score of a detection, 0 .. 1
  std::array<float, 4> box{};  // x, y, width, height in pixels of the full image
  Rings outline;               // in the same pixels; empty = only the box
  Kind kind = found;
  bool crowd = false;
  std::string note;  // its error, such as "duplicate" or "no anchor"; empty = none or unknown
  /// For an annotation: score of its matching detection; 0 = no match, negative = unknown.
  double found_at = -1;
};

struct Picture {
  std::string title, caption;
  int width = 0, height = 0;  // of the full image, in pixels
  std::string jpeg;           // JPEG thumbnail of any size; may be empty
  std::vector<Shape> shapes;
  std::vector<std::pair<std::string, double>> metrics;  // to sort by
  std::vector<std::string> tags;                        // tags to filter by
};

struct Gallery {
  std::vector<std::string> categories;
  std::vector<Picture> pictures;
  double score = .5;  // initial score threshold
};

nlohmann::ordered_json to_json(const Picture& picture);
nlohmann::ordered_json to_json(const Gallery& gallery);

/// Rounds a number to `digits` significant digits.
double rounded(double value, int digits);

}  // namespace millrace::report
