// Images with detections and annotations for pages: thumbnails, edges of masks as polygons, and the
// viewer's JSON (tools/report/README.md). Pure and thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <opencv2/core/mat.hpp>
#include <opencv2/core/types.hpp>
#include <string>
#include <utility>
#include <vector>

#include "millrace/coco/data/annotations.h"

namespace millrace::report {

/// Closed rings of integer pixels: x0, y0, x1, y1, ...; rings of holes have the opposite
/// orientation.
using Rings = std::vector<std::vector<int>>;

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

/// Encodes an 8-bit RGB image (H, W, 3) as a JPEG of up to `most_bytes`, as large as possible with
/// a longer side of up to `most_side` pixels. The longer side is at least 64 pixels, even if the
/// JPEG is then larger. Throws Error.
std::string thumbnail(const cv::Mat& rgb, std::size_t most_bytes, int most_side = 640);

/// Returns the edges of a shape in pixels of its image, within about `tolerance` pixels; empty for
/// an empty shape.
Rings outline_of(const coco::Segmentation& shape, double tolerance = 1);

/// Returns the outline tolerance, in pixels of the image, that is invisible on a thumbnail of
/// `side` pixels.
double outline_tolerance(cv::Size image, int side);

}  // namespace millrace::report
