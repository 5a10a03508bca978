// Data sets and detections for the evaluator, from Python's dicts or read from files.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"
#include "objects.h"

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

/// What an evaluation looks at.
enum class Task { bbox, segm, keypoints };
Task task_of(std::string_view iou_type);

}  // namespace millrace::python
