// COCO's instances_*.json in memory: read once, verified, then shared and immutable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// The shape of an object: polygons (the parts of one object), a run-length mask, or none (box
/// only).
using Segmentation = std::variant<std::monostate, std::vector<Polygon>, Rle>;

/// Returns the area of the shape in pixels: exact for polygons, the pixel count for a mask, 0 for
/// none.
double shape_area(const Segmentation& shape);

/// Returns the shape as a mask of this image size; an empty mask if there is no shape.
Rle mask_of(Segmentation shape, std::uint32_t height, std::uint32_t width);

enum class ShapeKind : std::uint32_t { none, polygons, mask };

/// The position of a shape in the arrays of its data set.
struct ShapeRef {
  std::uint64_t first = 0;  // position in `polygon_ends` (polygons) or `runs` (mask)
  std::uint32_t count = 0;
  ShapeKind kind = ShapeKind::none;
};

/// The position of a name in the text of its data set.
struct TextRef {
  std::uint64_t first = 0, count = 0;
};

struct Annotation {
  std::int64_t id = 0;
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  double bbox[4] = {0, 0, 0, 0};  // x, y, width, height in pixels, as in the file
  double area = 0;                // pixels; from the file, or of the shape if the field is missing
  ShapeRef shape;                 // see Dataset::segmentation
  std::uint64_t keypoints = 0;    // see Dataset::keypoints_of
  // Visible keypoints; from the file, or counted if the field is missing.
  std::int32_t num_keypoints = 0;
  std::uint16_t keypoint_count = 0;  // all keypoints
  bool crowd = false;
  /// The field 'ignore': not used for training. COCO's evaluation uses only `crowd`, LVIS's only
  /// this.
  bool ignored = false;
};

struct Image {
  std::int64_t id = 0;
  TextRef file_name;  // see Dataset::text
  std::int32_t width = 0, height = 0;
  std::uint32_t first = 0, count = 0;               // its range in Dataset::annotations
  std::uint64_t category_lists = 0;                 // see Dataset::negative_categories
  std::uint32_t negatives = 0, not_exhaustive = 0;  // lengths of the lists
};

/// Returns the part of an object's box inside its image, which is the training target.
Box clipped_box(const Annotation& object, const Image& image);

/// Returns whether that part is at least one pixel wide and high; smaller objects cannot be
/// learned.
bool has_pixels(const Annotation& object, const Image& image);

struct Category {
  std::int64_t id = 0;
  TextRef name;        // see Dataset::text
  char frequency = 0;  // LVIS: 'r', 'c' or 'f' for rare, common, frequent; 0 = not specified
  std::uint8_t unused[7] = {};  // explicit padding, so that equal records have equal bytes
};

/// A data set. Images and categories are sorted by id; annotations are grouped by image, in file
/// order. Immutable, so thread-safe.
struct Dataset {
  std::string source;                  // file name for messages
  std::shared_ptr<const void> memory;  // owner of the arrays: vectors or a mapped file
  std::span<const Image> images;
  std::span<const Annotation> annotations;
  std::span<const Category> categories;
  std::span<const double> coordinates;  // polygon points x0, y0, x1, y1, ... in pixels
  std::span<const double> keypoints;    // x, y, v per keypoint; x, y in pixels, 0 if not labelled
  // End of each polygon in `coordinates`; it begins at the previous end.
  std::span<const std::uint64_t> polygon_ends;
  std::span<const std::int64_t> category_lists;  // category ids, image by image
  std::span<const std::uint32_t> runs;           // per mask: height, width, counts
  std::span<const char> names;

  std::span<const Annotation> objects(const Image& image) const {
    return annotations.subspan(image.first, image.count);
  }
  Segmentation segmentation(const Annotation& object) const;
  /// Keypoints of an object as x, y, v, [3 * keypoint_count].
  std::span<const double> keypoints_of(const Annotation& object) const {
    return keypoints.subspan(object.keypoints, std::size_t{3} * object.keypoint_count);
  }
  /// LVIS: categories known to be absent from the image, and categories whose objects may be only
  /// partly annotated.
  std::span<const std::int64_t> negative_categories(const Image& image) const {
    return category_lists.subspan(image.category_lists, image.negatives);
  }
  std::span<const std::int64_t> not_exhaustive_categories(const Image& image) const {
    return category_lists.subspan(image.category_lists + image.negatives, image.not_exhaustive);
  }
  std::string_view text(TextRef name) const { return {names.data() + name.first, name.count}; }

  /// Returns the position of a category id in `categories`, or -1.
  int category_index(std::int64_t id) const;
  /// Returns the image with this id, or nullptr.
  const Image* find_image(std::int64_t id) const;
};

/// Reads and verifies an annotation file, a large one on all threads of the caller's arena. Throws
/// Error with the reason and place (byte, line, annotation id) for: invalid or truncated JSON, a
/// missing section or field, a wrong type, a duplicate id, an annotation of an unknown image or
/// category, a polygon with an odd number or fewer than 6 coordinates, RLE that does not fill its
/// image, a non-finite or negative box, keypoints that are not triples. An image without
/// `file_name` gets the last part of its `coco_url`.
std::shared_ptr<const Dataset> read_dataset(const std::filesystem::path& json);

/// Reads a data set from JSON text on the calling thread. `source` is the name used in error
/// messages.
std::shared_ptr<const Dataset> parse_dataset(std::string_view json, const std::string& source);

}  // namespace millrace::coco
