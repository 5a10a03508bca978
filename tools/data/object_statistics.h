// Statistics of the objects of a data set at the size that the detector processes. The functions
// are pure and use all threads of the caller's arena; the results do not depend on the number of
// threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <opencv2/core/types.hpp>
#include <span>
#include <string>
#include <vector>

#include "millrace/coco/masks/masks.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"
#include "millrace/tools/data/checks.h"

namespace millrace {

/// One object, or a crowd region.
struct SeenObject {
  Box box;  // in pixels of the resized image
  std::int32_t label = 0;
  bool crowd = false;  // true for a crowd region, which is not learned

  /// Returns the square root of the box area.
  double size() const;
  double short_side() const { return std::min(box.width(), box.height()); }
  double long_side() const { return std::max(box.width(), box.height()); }
  /// Returns height / width, like the ratios of anchors.
  double ratio() const { return double{box.height()} / box.width(); }
};

struct SeenImage {
  std::int64_t image_id = 0;
  std::int64_t sample = 0;             // index in the source
  cv::Size original, seen;             // size in pixels before and after the resize
  std::uint32_t first = 0, count = 0;  // objects in SeenData::objects, including crowds
};

struct SeenData {
  std::vector<std::string> classes;
  std::vector<SeenImage> images;
  std::vector<SeenObject> objects;  // ordered by image
  std::int64_t without_size = 0;    // skipped images whose size is unknown before decoding
  std::int64_t unreadable = 0;      // skipped images that the source could not read

  std::span<const SeenObject> objects_of(const SeenImage& image) const {
    return std::span(objects).subspan(image.first, image.count);
  }
};

/// Returns the resized size of an image.
using ResizeRule = std::function<cv::Size(cv::Size original)>;

/// Collects all samples of a source, each once and without decoding. Objects that training leaves
/// out (DetectionSource) are not included. Empty `resize` = no resize.
SeenData seen_data(const Source<Sample>& source, std::vector<std::string> classes,
                   const ResizeRule& resize);

/// Appends an image and its objects. `x` and `y` scale their boxes to pixels of `image.seen`.
void add_image(SeenData& data, SeenImage image, const Instances& objects, float x = 1, float y = 1);

/// Returns up to `most` images, evenly spaced.
SeenData thinned(const SeenData& data, std::size_t most);

/// Returns a number for each object except crowds, such as `values(data, &SeenObject::size)`.
std::vector<double> values(const SeenData& data, double (SeenObject::*of)() const);
/// Returns the number of objects of each image, without crowds.
std::vector<double> objects_per_image(const SeenData& data);
/// Returns the objects and images of each class, without crowds.
std::vector<ClassCount> class_counts(const SeenData& data);
/// Returns the number of crowd regions.
std::size_t crowd_count(const SeenData& data);

/// Returns names of the size kinds of kSizeBounds: "under 16", "16 to 32", ...
std::vector<std::string> size_names();
/// Returns the index of the size kind of a size in pixels.
std::size_t size_kind(double size);

/// Number of values below edges[0], between successive edges, and from the last edge on.
struct Histogram {
  std::vector<double> edges;          // (E) ascending
  std::vector<std::uint64_t> counts;  // (E + 1)
};
/// Counts values. Throws std::invalid_argument unless the edges are ascending.
Histogram histogram(std::span<const double> values, std::vector<double> edges);

/// Returns the smallest value that is not exceeded by a fraction `q`, 0 .. 1, of the values; 0
/// without values.
double quantile(std::span<const double> values, double q);

}  // namespace millrace
