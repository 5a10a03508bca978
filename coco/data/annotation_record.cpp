#include "millrace/coco/data/annotation_record.h"

#include "millrace/coco/data/segmentation.h"

namespace millrace::coco {

void read_annotation(JsonReader& json, Records& records) {
  Annotation one;
  bool has_area = false, has_number = false;
  json.fields(required("id", [&] { one.id = json.integer(); }),
              required("image_id", [&] { one.image_id = json.integer(); }),
              required("category_id", [&] { one.category_id = json.integer(); }),
              required("bbox",
                       [&] {
                         json.next();
                         const char* at = json.at();
                         if (!read_box(json, one.bbox))
                           throw Wrong{at, "'bbox' is empty; expected 4 numbers"};
                       }),
              optional("area",
                       [&] {
                         one.area = json.number();
                         has_area = true;
                       }),
              optional("iscrowd", [&] { one.crowd = json.flag(); }),
              optional("ignore", [&] { one.ignored = !json.take_null() && json.flag(); }),
              optional("segmentation", [&] { one.shape = read_segmentation(json, records); }),
              optional("keypoints",
                       [&] {
                         const std::size_t begin = records.keypoints.size();
                         one.keypoint_count = read_keypoints(json, records.keypoints);
                         if (one.keypoint_count > 0) one.keypoints = begin;
                       }),
              optional("num_keypoints", [&] {
                if (json.take_null()) return;
                one.num_keypoints = static_cast<std::int32_t>(json.integer());
                has_number = true;
              }));
  if (!has_number)
    for (std::size_t i = 0; i < one.keypoint_count; ++i)
      one.num_keypoints += records.keypoints[one.keypoints + 3 * i + 2] > 0;
  if (!has_area) {
    const bool box_only = one.shape.kind == ShapeKind::none;
    one.area = box_only ? one.bbox[2] * one.bbox[3] : shape_area(one.shape, records);
  }
  records.annotations.push_back(one);
}

}  // namespace millrace::coco
