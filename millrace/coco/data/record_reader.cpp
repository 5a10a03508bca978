#include "millrace/coco/data/record_reader.h"

#include <fmt/format.h>

#include "millrace/coco/data/segmentation.h"

namespace millrace::coco {
namespace {

std::int32_t side(json::value value, std::string_view field) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;  // OpenCV opens no larger ones
  const char* at = place(value);
  const std::int64_t pixels = integer(value, field);
  if (pixels < 1 || pixels > kMost) {
    throw Wrong{
        at, fmt::format("'{}' is {}; an image has 1 to {} pixels a side", field, pixels, kMost)};
  }
  return static_cast<std::int32_t>(pixels);
}

void read_images(JsonText& text_of_file, json::array section, Records& records) {
  text_of_file.each_record(section, "images", [&](json::object fields, const char* at) {
    Image one;
    read_fields(
        fields, at, required("id", [&](json::value v) { one.id = integer(v, "id"); }),
        required("file_name",
                 [&](json::value v) { one.file_name = records.add_text(text(v, "file_name")); }),
        required("width", [&](json::value v) { one.width = side(v, "width"); }),
        required("height", [&](json::value v) { one.height = side(v, "height"); }));
    if (std::int64_t{one.width} * one.height > UINT32_MAX) {  // what run lengths count with
      throw Wrong{at, fmt::format("{} x {} pixels are too many; an image has less than 2^32",
                                  one.width, one.height)};
    }
    records.images.push_back(one);
  });
}

void read_categories(JsonText& text_of_file, json::array section, Records& records) {
  text_of_file.each_record(section, "categories", [&](json::object fields, const char* at) {
    Category one;
    read_fields(
        fields, at, required("id", [&](json::value v) { one.id = integer(v, "id"); }),
        required("name", [&](json::value v) { one.name = records.add_text(text(v, "name")); }));
    records.categories.push_back(one);
  });
}

}  // namespace

void read_sections(JsonText& text_of_file, Records& records,
                   const std::function<void(json::value)>& on_annotations) {
  text_of_file.read(
      required("images",
               [&](json::value v) { read_images(text_of_file, array(v, "images"), records); }),
      required("annotations", on_annotations), required("categories", [&](json::value v) {
        read_categories(text_of_file, array(v, "categories"), records);
      }));
}

void read_annotation(json::object fields, const char* at, Records& records) {
  Annotation one;
  bool has_area = false;
  read_fields(
      fields, at, required("id", [&](json::value v) { one.id = integer(v, "id"); }),
      required("image_id", [&](json::value v) { one.image_id = integer(v, "image_id"); }),
      required("category_id", [&](json::value v) { one.category_id = integer(v, "category_id"); }),
      required("bbox",
               [&](json::value v) {
                 if (!read_box(v, one.bbox))
                   throw Wrong{place(v), "'bbox' is empty; it needs 4 numbers"};
               }),
      optional("area",
               [&](json::value v) {
                 one.area = number(v, "area");
                 has_area = true;
               }),
      optional("iscrowd", [&](json::value v) { one.crowd = flag(v, "iscrowd"); }),
      optional("ignore",
               [&](json::value v) {
                 one.ignored = *place(v) != 'n' && flag(v, "ignore");  // some tools write null
               }),
      optional("segmentation", [&](json::value v) { one.shape = read_segmentation(v, records); }));
  if (!has_area) {
    const bool box_only = one.shape.kind == ShapeKind::none;
    one.area = box_only ? one.bbox[2] * one.bbox[3] : shape_area(one.shape, records);
  }
  records.annotations.push_back(one);
}

}  // namespace millrace::coco
