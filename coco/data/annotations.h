// COCO's instances_*.json in memory: read once, checked, then shared and const.
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

/// An object's shape: polygons (parts of one object), a run-length mask, or nothing (boxes only).
using Segmentation = std::variant<std::monostate, std::vector<Polygon>, Rle>;

/// Area of the shape in pixels: of polygons by their vertices, of a mask by counting. 0 for none.
double shape_area(const Segmentation& shape);

/// The shape as a mask of an image of this size; none: an empty one.
Rle mask_of(Segmentation shape, std::uint32_t height, std::uint32_t width);

enum class ShapeKind : std::uint32_t { none, polygons, mask };

/// Where an object's shape is in the arrays of its data set.
struct ShapeRef {
  std::uint64_t first = 0;  // position of polygons in `polygon_ends`, of a mask in `runs`
  std::uint32_t count = 0;
  ShapeKind kind = ShapeKind::none;
};

/// Where a name is in the text of its data set.
struct TextRef {
  std::uint64_t first = 0, count = 0;
};

struct Annotation {
  std::int64_t id = 0;
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  double bbox[4] = {0, 0, 0, 0};     // x y width height, pixels, as written
  double area = 0;                   // pixels; the file's field, or of the shape if that is absent
  ShapeRef shape;                    // see Dataset::segmentation
  std::uint64_t keypoints = 0;       // see Dataset::keypoints_of
  std::int32_t num_keypoints = 0;    // visible ones; the file's field, or counted if that is absent
  std::uint16_t keypoint_count = 0;  // all of them
  bool crowd = false;
  /// 'ignore': not to be learned. COCO's evaluation goes by `crowd` alone, LVIS's by this alone.
  bool ignored = false;
};

struct Image {
  std::int64_t id = 0;
  TextRef file_name;  // see Dataset::text
  std::int32_t width = 0, height = 0;
  std::uint32_t first = 0, count = 0;               // its annotations in Dataset::annotations
  std::uint64_t category_lists = 0;                 // see Dataset::negative_categories
  std::uint32_t negatives = 0, not_exhaustive = 0;  // lengths of the lists
};

/// The part of an object's box inside its image, which is what a detector learns.
Box clipped_box(const Annotation& object, const Image& image);

/// Whether that part is at least a pixel wide and high: less cannot be learned.
bool has_pixels(const Annotation& object, const Image& image);

struct Category {
  std::int64_t id = 0;
  TextRef name;                 // see Dataset::text
  char frequency = 0;           // LVIS's 'r', 'c' or 'f': rare, common, frequent; 0: not said
  std::uint8_t unused[7] = {};  // instead of padding: equal records are equal bytes
};

/// A data set. Images and categories ascend by id; annotations are grouped by image, in the order
/// of the file. Const, so any thread may read.
struct Dataset {
  std::string source;                  // the file, for messages
  std::shared_ptr<const void> memory;  // owns the arrays: vectors or a mapped file
  std::span<const Image> images;
  std::span<const Annotation> annotations;
  std::span<const Category> categories;
  std::span<const double> coordinates;           // polygons' points: x0 y0 x1 y1 ..., pixels
  std::span<const double> keypoints;             // x y v of each: pixels, and 0 for one not there
  std::span<const std::uint64_t> polygon_ends;   // in `coordinates`; each begins at the last one's
  std::span<const std::int64_t> category_lists;  // ids of categories, image by image
  std::span<const std::uint32_t> runs;           // for each mask: height, width, counts
  std::span<const char> names;

  std::span<const Annotation> objects(const Image& image) const {
    return annotations.subspan(image.first, image.count);
  }
  Segmentation segmentation(const Annotation& object) const;
  /// x y v of each, (3 * keypoint_count).
  std::span<const double> keypoints_of(const Annotation& object) const {
    return keypoints.subspan(object.keypoints, std::size_t{3} * object.keypoint_count);
  }
  /// LVIS: the categories that are known not to be in the image, and those of which some objects
  /// may not be marked.
  std::span<const std::int64_t> negative_categories(const Image& image) const {
    return category_lists.subspan(image.category_lists, image.negatives);
  }
  std::span<const std::int64_t> not_exhaustive_categories(const Image& image) const {
    return category_lists.subspan(image.category_lists + image.negatives, image.not_exhaustive);
  }
  std::string_view text(TextRef name) const { return {names.data() + name.first, name.count}; }

  /// Position of a category id in `categories`, or -1.
  int category_index(std::int64_t id) const;
  /// nullptr if there is none.
  const Image* find_image(std::int64_t id) const;
};

/// Reads an annotation file in one pass, a large one by all threads of the caller's arena. Throws
/// Error with the reason and place (byte, line, the annotation's id): no JSON, truncated, missing
/// section or field, wrong type, duplicate id, an annotation of an unknown image or category,
/// polygon of odd or < 6 numbers, RLE that does not fill its image, non-finite or negative box,
/// keypoints that are not triples. An image without `file_name` has the end of its `coco_url`.
std::shared_ptr<const Dataset> read_dataset(const std::filesystem::path& json);

/// The same from JSON text, by the calling thread; `source` names it in messages.
std::shared_ptr<const Dataset> parse_dataset(std::string_view json, const std::string& source);

}  // namespace millrace::coco
