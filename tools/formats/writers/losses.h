// What a format cannot hold, as writers report it.
#pragma once

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/findings.h"

namespace millrace::formats {

extern const coco::FindingKind kCrowdLost, kIgnoreLost, kKeypointsLost, kShapeLost, kBoxLost,
    kPartsBridged, kMaskOutlined, kPixelsHidden, kObjectHidden, kTooManyObjects, kBoxAsShape;

/// Adds a finding about an object.
void tell_lost(coco::Findings& findings, const coco::FindingKind& kind, const coco::Dataset& data,
               const coco::Image& image, const coco::Annotation& object);

/// Adds one for a mark that an object is ignored, and one for its keypoints.
void tell_marks_lost(coco::Findings& findings, const coco::Dataset& data, const coco::Image& image,
                     const coco::Annotation& object);

}  // namespace millrace::formats
