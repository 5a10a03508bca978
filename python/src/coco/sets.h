// Data sets and detections for the evaluator, from Python dicts or files.
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

/// A data set with the ground truth.
struct Truth {
  std::shared_ptr<const coco::Dataset> set;
};

/// Detections to evaluate.
struct Found {
  coco::Detections all;
  std::vector<std::int64_t> ids;  // ids of `all`; empty = index + 1, as in pycocotools' loadRes
  coco::AreaFrom area = coco::AreaFrom::box;
};

/// Throws Error beginning with `whose` unless a detection's mask has the size of its image, or of
/// an object's mask in that image, whose size may differ.
void expect_fit(const coco::Dataset& truth, const coco::Image& image, std::uint32_t height,
                std::uint32_t width, const std::string& whose);

/// The type of an evaluation.
enum class Task { bbox, segm, keypoints };
Task task_of(std::string_view iou_type);

/// Returns the objects of these images and categories (ascending ids) from the index that
/// `createIndex` builds.
Truth truth_of_index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs,
                     const Ids& image_ids, const Ids& category_ids, std::string_view iou_type,
                     bool federated);

/// Returns the detections of these images (ascending ids) from the index that `createIndex` builds.
Found found_of_index(const nb::dict& img_to_anns, const nb::dict& anns, const nb::dict& imgs,
                     const Ids& image_ids, std::string_view iou_type);

/// Returns the detections of a results list, as accepted by `loadRes`. `areas` is the source of
/// areas: "bbox", "segm" or "keypoints".
Found found_of_list(const nb::list& results, std::string_view iou_type, std::string_view areas,
                    const std::optional<nb::dict>& imgs, const Truth* truth);

using Rows = nb::ndarray<const double, nb::shape<-1, 7>, nb::c_contig, nb::device::cpu>;

/// Returns the detections in an array [N, 7]: image, x, y, width, height, score, category.
Found found_of_rows(const Rows& rows, bool single);

/// Returns true if every result belongs to a known image. Throws KeyError for a result without
/// 'image_id' or `required`.
bool are_of_images(const nb::list& results, const std::optional<nb::dict>& imgs, const Truth* truth,
                   const std::string& required);

}  // namespace millrace::python
