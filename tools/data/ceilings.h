// What perfect answers would score on a data set: what NMS, limits, anchors and the cells of masks
// cost whatever is learned. Pure; by all threads of the caller's arena; the same for any number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/tools/data/anchor_coverage.h"

namespace millrace {

/// What lies between the answers of a model and its detections.
struct CeilingRule {
  /// NMS threshold: of two overlapping boxes of a class the later is removed. nullopt = no NMS.
  std::optional<double> nms = 0.5;
  std::size_t detections_per_image = 100;
  std::uint32_t max_detections = 0;  // that AP counts, as coco::options_for

  std::optional<AnchorRule> anchors;  // nullopt = none, or not considered
  ResizeRule resize;                  // of the images that anchors lie over; empty: none

  struct Masks {
    int cells = 28;       // a side
    bool soft = false;    // each cell has its share of the shape instead of 0 or 1
    bool padded = false;  // coco::paste_framed instead of coco::paste
  };
  std::optional<Masks> masks;  // nullopt = no masks
};

/// AP over all thresholds, 0 .. 1; -1 if there are no objects.
struct Ceilings {
  std::size_t objects = 0;        // no crowds
  double boxes = -1;              // the true boxes, cut to their images, after NMS and the limit
  std::size_t suppressed = 0;     // objects whose box NMS removes
  std::size_t beyond_limit = 0;   // and those that the limit leaves out
  std::optional<double> reached;  // as `boxes`, without objects that no anchor reaches
  std::size_t unreached = 0;      // their number
  std::optional<double> masks;  // all true shapes, rasterised to cells and pasted into their boxes
};

/// Of the objects of the split's classes, as COCO's evaluator scores them (of a federated data set
/// LVIS's). Equal scores: NMS and the limit keep what is first in the file. Throws
/// std::invalid_argument as anchor_coverage.
Ceilings ceilings(const DataSplit& split, const CeilingRule& rule);

}  // namespace millrace
