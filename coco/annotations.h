// COCO's instances_*.json in memory: read once, checked, then shared and const.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "coco/boxes.h"
#include "coco/masks.h"

namespace millrace::coco {

/// An object's shape: polygons (parts of one object), a run-length mask, or nothing (boxes only).
using Segmentation = std::variant<std::monostate, std::vector<Polygon>, Rle>;

/// Area of the shape in pixels: of polygons by their vertices, of a mask by counting. 0 for none.
double shape_area(const Segmentation& shape);

struct Annotation {
  std::int64_t id = 0;
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  double bbox[4] = {0, 0, 0, 0};  // x y width height, pixels, as written
  double area = 0;  // pixels; the file's field, or derived from the shape where it is absent
  bool crowd = false;
  Segmentation segmentation;
};

struct Image {
  std::int64_t id = 0;
  std::string file_name;
  std::int32_t width = 0, height = 0;
  std::uint32_t first = 0, count = 0;  // its annotations in Dataset::annotations
};

struct Category {
  std::int64_t id = 0;
  std::string name;
};

/// A data set. Images ascend by id; annotations stand together by image in the order of the file.
struct Dataset {
  std::string source;  // the file, for messages
  std::vector<Image> images;
  std::vector<Annotation> annotations;
  std::vector<Category> categories;  // ascending id

  std::span<const Annotation> objects(const Image& image) const {
    return {annotations.data() + image.first, image.count};
  }
  /// Position of a category id in `categories`, or -1.
  int category_index(std::int64_t id) const;
  /// nullptr where there is none.
  const Image* find_image(std::int64_t id) const;
};

/// Reads an annotation file in one pass. Throws Error saying what is wrong and where (byte, line, the
/// annotation's id): no JSON, truncated, missing section or field, wrong type, duplicate id, an annotation of
/// an unknown image or category, polygon of odd or < 6 numbers, RLE that does not fill its image,
/// non-finite or negative box.
std::shared_ptr<const Dataset> read_dataset(const std::filesystem::path& json);

/// The same from JSON text; `source` names it in messages.
std::shared_ptr<const Dataset> parse_dataset(std::string_view json, const std::string& source);

/// One detection, as in a COCO results file.
struct Detection {
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  double bbox[4] = {0, 0, 0, 0};  // x y width height, pixels
  bool has_bbox = false;
  double score = 0;
  Rle mask;  // empty counts: none
};

/// Reads a results file (an array of detections). Throws Error as `read_dataset`.
std::vector<Detection> read_detections(const std::filesystem::path& json);

/// Writes a results file, atomically: numbers so that reading gives the same values back.
void write_detections(const std::filesystem::path& json, std::span<const Detection> detections);

}  // namespace millrace::coco
