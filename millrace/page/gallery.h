// Pictures with shapes over them, to look through in a browser: filtered by class, score and tag,
// sorted by figures, found and annotated beside each other or over each other, each in a larger
// view. Works from a file, without a network and without a mouse; without scripts the pictures and
// their shapes are still there. Pure; any thread.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace millrace::page {

struct Shape {
  int category = 0;            // position in Gallery::categories
  double score = 1;            // [0, 1]; of annotations 1
  std::array<float, 4> box{};  // x y w h in pixels of the full image
  std::string outline;         // an SVG path in the same pixels; empty: the box alone
  enum Kind { found, annotated } kind = found;
  std::string note;  // what is wrong with it: "missed", "duplicate", ...; empty: nothing known
  /// Of an annotation: the score of the detection that finds it, 0 if none does; at a higher
  /// threshold it is shown as missed. < 0: not known.
  double found_at = -1;
};

struct Picture {
  std::string title, caption;  // text
  int width = 0, height = 0;   // of the full image, pixels
  std::string jpeg;            // bytes of a thumbnail of any size; empty: a grey field in its place
  std::vector<Shape> shapes;
  std::vector<std::pair<std::string, double>> figures;  // to sort by; shown below the picture
  std::vector<std::string> tags;                        // to filter by
};

struct Gallery {
  std::string id;  // letters, digits and dashes, once in a page
  std::vector<std::string> categories;
  std::vector<Picture> pictures;
  double score = .5;  // found shapes with a lower score are not shown at first
};

/// HTML for a section of a Page, which adds the script. Equal input gives equal bytes.
std::string gallery(const Gallery& all);

}  // namespace millrace::page
