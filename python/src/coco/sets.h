// Data sets and detections for the evaluator, from Python's dicts or read from files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"
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

}  // namespace millrace::python
