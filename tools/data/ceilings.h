// Computes the scores of perfect predictions on a data set, which bound those of any model: the
// losses due to NMS, limits of detections, anchors and mask resolution. The functions are pure and
// use all threads of the caller's arena; the result does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/tools/data/anchor_coverage.h"

namespace millrace {

/// The steps between a model's predictions and its detections.
struct CeilingRule {
  /// NMS threshold: the later of two overlapping boxes of a class is removed. nullopt = no NMS.
  std::optional<double> nms = 0.5;
  std::size_t detections_per_image = 100;
  std::uint32_t max_detections = 0;  // limit of AP, as in coco::options_for

  std::optional<AnchorRule> anchors;  // nullopt = none, or not considered
  ResizeRule resize;                  // resize of the images before anchors are placed; empty =
                                      // none

  struct Masks {
    int cells = 28;       // per side
    bool soft = false;    // true: a cell's value is the covered fraction of its area instead of 0
                          // or 1
    bool padded = false;  // true: coco::paste_framed instead of coco::paste
  };
  std::optional<Masks> masks;  // nullopt = no masks
};

/// Results; AP is averaged over all IoU thresholds, 0 .. 1; -1 if there are no objects.
struct Ceilings {
  std::size_t objects = 0;        // without crowds
  double boxes = -1;              // AP of the ground truth boxes, clipped to their images, after
                                  // NMS and the limit
  std::size_t suppressed = 0;     // objects that NMS removes
  std::size_t beyond_limit = 0;   // objects that the limit removes
  std::optional<double> reached;  // like `boxes`, without objects that no anchor matches
  std::size_t unreached = 0;      // number of objects that no anchor matches
  std::optional<double> masks;  // AP of all masks, rasterised to cells and pasted into their boxes
};

/// Evaluates perfect predictions for the objects of the split's classes with COCO's evaluator
/// (LVIS's for a federated data set). Scores are equal, so NMS and the limit keep the first objects
/// of the file. Throws std::invalid_argument under the conditions of anchor_coverage.
Ceilings ceilings(const DataSplit& split, const CeilingRule& rule);

}  // namespace millrace
