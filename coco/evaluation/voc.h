// Pascal VOC's average precision (Everingham et al. 2010), as its development kit computes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

/// AP of a class; -1 if it has no objects.
struct VocClass {
  std::int64_t category_id = 0;
  std::int64_t objects = 0;  // excludes difficult objects
  double ap = -1;            // area under the interpolated precision (VOC 2010 and later)
  double ap_11 = -1;  // mean of the interpolated precision at recalls 0, .1, ... 1 (VOC 2007)
};

struct VocEvaluation {
  std::vector<VocClass> classes;
  double map = -1, map_11 = -1;  // means over the classes with objects
};

inline constexpr double kVocIou = 0.5;

/// Evaluates detections by Pascal VOC's rules. The detections of each class, by falling score and
/// then in the given order, each select the object of their image and class with the largest IoU,
/// the first at equal IoU. A detection is right if that IoU is at least `iou` and no better
/// detection took the object. If the object is difficult (`ignored` or a crowd), the detection is
/// neither right nor wrong. Only boxes are compared; a detection without one uses the box of its
/// mask. `category_ids` restricts the classes, in this order; empty = all of the data set.
VocEvaluation evaluate_voc(const Dataset& truth, const Detections& detections,
                           std::span<const std::int64_t> category_ids = {}, double iou = kVocIou);

/// Returns a table with one line per class and the means.
std::string table(const VocEvaluation& evaluation, const Dataset& truth);

}  // namespace millrace::coco
