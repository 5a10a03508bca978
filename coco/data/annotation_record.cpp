#include "millrace/coco/data/annotation_record.h"

#include "millrace/coco/data/segmentation.h"

namespace millrace::coco {
namespace {

/// What follows from the rest where the file does not say it.
void complete(Annotation& one, bool has_area, bool has_number, const Records& records) {
  if (!has_number)
    for (std::size_t i = 0; i < one.keypoint_count; ++i)
      one.num_keypoints += records.keypoints[one.keypoints + 3 * i + 2] > 0;
  if (!has_area) {
    const bool box_only = one.shape.kind == ShapeKind::none;
    one.area = box_only ? one.bbox[2] * one.bbox[3] : shape_area(one.shape, records);
  }
}

}  // namespace

void read_annotation(json::object fields, const char* at, Records& records) {
  Annotation one;
  bool has_area = false, has_number = false;
  read_fields(
      fields, at, required("id", one.id), required("image_id", one.image_id),
      required("category_id", one.category_id),
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
      optional("segmentation", [&](json::value v) { one.shape = read_segmentation(v, records); }),
      optional("keypoints",
               [&](json::value v) {
                 const std::size_t begin = records.keypoints.size();
                 one.keypoint_count = read_keypoints(v, records.keypoints);
                 if (one.keypoint_count > 0) one.keypoints = begin;
               }),
      optional("num_keypoints", [&](json::value v) {
        if (*place(v) == 'n' && v.is_null()) return;
        one.num_keypoints = static_cast<std::int32_t>(integer(v, "num_keypoints"));
        has_number = true;
      }));
  complete(one, has_area, has_number, records);
  records.annotations.push_back(one);
}

bool read_plain_annotation(PlainJson& text, Records& records) {
  Annotation one;
  bool has_area = false, has_number = false;
  const bool read = text.fields(
      required("id", [&] { return text.integer(one.id); }),
      required("image_id", [&] { return text.integer(one.image_id); }),
      required("category_id", [&] { return text.integer(one.category_id); }),
      required("bbox", [&] { return read_plain_box(text, one.bbox); }),
      optional("area", [&] { return has_area = text.number(one.area); }),
      optional("iscrowd", [&] { return text.flag(one.crowd); }),
      optional("ignore", [&] { return text.flag(one.ignored); }),
      optional("segmentation", [&] { return read_plain_segmentation(text, records, one.shape); }),
      optional("keypoints",
               [&] {
                 const std::size_t begin = records.keypoints.size();
                 if (!read_plain_keypoints(text, records.keypoints, one.keypoint_count))
                   return false;
                 if (one.keypoint_count > 0) one.keypoints = begin;
                 return true;
               }),
      optional("num_keypoints", [&] {
        std::int64_t number = 0;
        has_number = text.integer(number);
        one.num_keypoints = static_cast<std::int32_t>(number);
        return has_number;
      }));
  if (!read) return false;
  complete(one, has_area, has_number, records);
  records.annotations.push_back(one);
  return true;
}

}  // namespace millrace::coco
