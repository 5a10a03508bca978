// Pascal VOC's average precision (Everingham et al. 2010), as its development kit computes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "millrace/coco/data/detections.h"

namespace millrace::coco {

/// AP of a class; -1 where there is nothing to find.
struct VocClass {
  std::int64_t category_id = 0;
  std::int64_t objects = 0;  // without difficult ones
  double ap = -1;            // area under the precision that no higher recall surpasses (2010 on)
  double ap_11 = -1;         // mean of that precision at recalls 0, .1, ... 1 (2007)
};

struct VocEvaluation {
  std::vector<VocClass> classes;
  double map = -1, map_11 = -1;  // means over the classes that have objects
};

inline constexpr double kVocIou = 0.5;

/// Detections of each class, best score first and ties as given, take the object of their image and
/// class that they overlap most, the first of equal overlaps: right if the IoU is at least `iou`
/// and no better one took it. Where that object is difficult (`ignored`, or a crowd), a detection
/// is neither right nor wrong. Boxes alone count; those of a detection without one are of its mask.
/// `category_ids`: only these, in this order; empty: all of the data set.
VocEvaluation evaluate_voc(const Dataset& truth, const Detections& detections,
                           std::span<const std::int64_t> category_ids = {}, double iou = kVocIou);

/// A line for each class, then the means.
std::string table(const VocEvaluation& evaluation, const Dataset& truth);

}  // namespace millrace::coco
