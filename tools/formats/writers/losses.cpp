#include "millrace/tools/formats/writers/losses.h"

#include <string>

namespace millrace::formats {

using coco::FindingKind;
using enum coco::Severity;

constexpr FindingKind kCrowdLost{"lost-crowd", warning, "crowd regions, which the format has not",
                                 "they are left out, and become background"};
constexpr FindingKind kIgnoreLost{"lost-ignore", note,
                                  "objects marked 'ignore', which the format does not say",
                                  "they become ordinary objects"};
constexpr FindingKind kKeypointsLost{"lost-keypoints", warning,
                                     "objects with keypoints, which the format has not",
                                     "the objects are written without"};
constexpr FindingKind kShapeLost{"lost-shape", warning,
                                 "shapes, of which the format holds the box alone",
                                 "the objects are written as boxes"};
constexpr FindingKind kBoxLost{"lost-box", warning, "objects without a shape",
                               "they are left out: the format holds masks alone"};
constexpr FindingKind kPartsBridged{"lost-parts", note, "objects of several parts or with holes",
                                    "the parts are joined by bridges to one polygon"};
constexpr FindingKind kMaskOutlined{"lost-runs", note, "run-length masks",
                                    "they are written as polygons along the sides of their pixels"};
constexpr FindingKind kPixelsHidden{"lost-overlap", warning, "masks that others overlap",
                                    "shared pixels go to the smaller object"};
constexpr FindingKind kObjectHidden{"lost-hidden", warning, "masks without a pixel of their own",
                                    "they are left out: others cover them, or they are empty"};
constexpr FindingKind kTooManyObjects{"lost-masks", warning,
                                      "images with more objects than the format has values",
                                      "they are written without masks"};
constexpr FindingKind kBoxAsShape{
    "lost-box-only", note, "boxes without a shape in images where others have one",
    "they are written as polygons of four corners, since YOLO's tools "
    "read a file as all boxes or all polygons"};

void tell_lost(coco::Findings& findings, const FindingKind& kind, const coco::Dataset& data,
               const coco::Image& image, const coco::Annotation& object) {
  findings.add(kind, {.annotation = object.id,
                      .image = image.id,
                      .file = std::string(data.text(image.file_name))});
}

void tell_marks_lost(coco::Findings& findings, const coco::Dataset& data, const coco::Image& image,
                     const coco::Annotation& object) {
  if (object.ignored) tell_lost(findings, kIgnoreLost, data, image, object);
  if (object.keypoint_count > 0) tell_lost(findings, kKeypointsLost, data, image, object);
}

}  // namespace millrace::formats
