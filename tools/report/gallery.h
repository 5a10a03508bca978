// Images with shapes over them as the viewer's JSON (tools/report/README.md). Pure; any thread.
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

  int category = 0;            // position in Gallery::categories
  double score = 1;            // of what was found, from 0 to 1
  std::array<float, 4> box{};  // x y w h in pixels of the full image
  Rings outline;               // in the same pixels; empty: the box alone
  Kind kind = found;
  bool crowd = false;
  std::string note;  // what is wrong with it: "duplicate", "no anchor", ...; empty = unknown
  /// The score of the detection that matches this annotation; 0 = none does, negative = unknown.
  double found_at = -1;
};

struct Picture {
  std::string title, caption;
  int width = 0, height = 0;  // of the full image, pixels
  std::string jpeg;           // bytes of a thumbnail of any size; may be empty
  std::vector<Shape> shapes;
  std::vector<std::pair<std::string, double>> figures;  // to sort by
  std::vector<std::string> tags;                        // to filter by
};

struct Gallery {
  std::vector<std::string> categories;
  std::vector<Picture> pictures;
  double score = .5;  // threshold at first
};

nlohmann::ordered_json to_json(const Picture& picture);
nlohmann::ordered_json to_json(const Gallery& gallery);

/// A number with up to `digits` significant digits.
double rounded(double value, int digits);

}  // namespace millrace::report
