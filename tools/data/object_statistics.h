// What there is to learn, as numbers: every object at the size at which a detector sees it, and
// what follows from that. Pure; by all threads of the caller's arena; the same for any number.
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
  Box box;  // pixels of the image as the detector sees it
  std::int32_t label = 0;
  bool crowd = false;      // not learned
  bool has_shape = false;  // polygons or a mask

  /// The square root of the box's area.
  double size() const;
  double short_side() const { return std::min(box.width(), box.height()); }
  double long_side() const { return std::max(box.width(), box.height()); }
  /// Height / width, as anchors have it.
  double ratio() const { return double{box.height()} / box.width(); }
};

struct SeenImage {
  std::int64_t image_id = 0;
  std::int64_t sample = 0;             // its number in the source
  cv::Size original, seen;             // pixels, before and after the resize
  std::uint32_t first = 0, count = 0;  // its objects in SeenData::objects, crowds among them
};

struct SeenData {
  std::vector<std::string> classes;
  std::vector<SeenImage> images;
  std::vector<SeenObject> objects;  // image after image
  std::int64_t without_size = 0;    // images left out: their size is known once they are decoded
  std::int64_t unreadable = 0;      // images left out: the source could not read them

  std::span<const SeenObject> objects_of(const SeenImage& image) const {
    return std::span(objects).subspan(image.first, image.count);
  }
};

/// The size at which a detector sees an image of this one.
using ResizeRule = std::function<cv::Size(cv::Size original)>;

/// All samples of a source, which are not decoded; each once, whatever its repeats. Objects that
/// training leaves out (DetectionSource) are left out here. `resize`: empty for none.
SeenData seen_data(const Source<Sample>& source, std::vector<std::string> classes,
                   const ResizeRule& resize);

/// Appends an image and its objects, whose boxes times `x` and `y` are in pixels of `image.seen`.
void add_image(SeenData& data, SeenImage image, const Instances& objects, float x = 1, float y = 1);

/// About `most` of the images, evenly over all; all if there are no more.
SeenData thinned(const SeenData& data, std::size_t most);

/// One number of each object that is no crowd: `values(data, &SeenObject::size)`.
std::vector<double> values(const SeenData& data, double (SeenObject::*of)() const);
/// Objects of each image, crowds not counted.
std::vector<double> objects_per_image(const SeenData& data);
/// Objects and images of each class; crowds do not count.
std::vector<ClassCount> class_counts(const SeenData& data);
/// Crowd regions.
std::size_t crowd_count(const SeenData& data);

/// "under 16", "16 to 32", ... as kSizeBounds parts them.
std::vector<std::string> size_names();
/// The place of a size, in pixels, among the kinds that kSizeBounds parts.
std::size_t size_kind(double size);

/// Counts of values below edges[0], from each edge to the next, and from the last one on.
struct Histogram {
  std::vector<double> edges;          // (E) ascending
  std::vector<std::uint64_t> counts;  // (E + 1)
  std::uint64_t total() const;
};
/// Throws std::invalid_argument for edges that do not ascend.
Histogram histogram(std::span<const double> values, std::vector<double> edges);

/// The value that a share `q`, 0 .. 1, of the values do not exceed; of none 0.
double quantile(std::span<const double> values, double q);

}  // namespace millrace
