// Data sets and detections for the evaluator, from Python's dicts or read from files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"
#include "python/src/coco/arrays.h"
#include "python/src/coco/objects.h"

namespace millrace::python {

/// A data set to evaluate against.
struct Truth {
  std::shared_ptr<const coco::Dataset> set;
};

/// Detections to evaluate.
struct Found {
  coco::Detections all;
  std::vector<std::int64_t> ids;  // of each; empty: its position + 1, as pycocotools' loadRes
  coco::AreaFrom area = coco::AreaFrom::box;
};

/// Whether a detection's mask has the size of its image, or of an object's mask there, which may be
/// of another. Throws Error that begins with `whose`.
void expect_fit(const coco::Dataset& truth, const coco::Image& image, std::uint32_t height,
                std::uint32_t width, const std::string& whose);

/// What an evaluation looks at.
enum class Task { bbox, segm, keypoints };
Task task_of(std::string_view iou_type);

/// The objects of these images and categories (ascending ids), of the index that `createIndex`
/// makes.
Truth truth_of_index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs,
                     const Ids& image_ids, const Ids& category_ids, std::string_view iou_type,
                     bool federated);

/// The detections of these images (ascending ids), of such an index.
Found found_of_index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs,
                     const Ids& image_ids, std::string_view iou_type);

/// Detections of a results list as `loadRes` takes it. `areas`: what areas are taken from, "bbox",
/// "segm" or "keypoints".
Found found_of_list(const nb::list& results, std::string_view iou_type, std::string_view areas,
                    const std::optional<nb::dict>& imgs, const Truth* truth);

using Rows = nb::ndarray<const double, nb::shape<-1, 7>, nb::c_contig, nb::device::cpu>;

/// Detections of an array (N, 7): image, x, y, width, height, score, category.
Found found_of_rows(const Rows& rows, bool single);

/// Whether each result of a list is of an image that is there. Throws KeyError for one that lacks
/// 'image_id' or `required`.
bool are_of_images(const nb::list& results, const std::optional<nb::dict>& imgs, const Truth* truth,
                   const std::string& required);

}  // namespace millrace::python
