// Findings that readers of labels report.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "millrace/coco/data/findings.h"

namespace millrace::formats {

using coco::FindingKind;
using coco::Severity;

// Labels kept as written; `trainer doctor` reports how training handles them.
inline constexpr FindingKind kBoxOutside{"label-outside", Severity::warning,
                                         "boxes that reach more than a pixel beyond their image",
                                         "kept as written; training clips them"};
inline constexpr FindingKind kBoxEmpty{"label-empty", Severity::warning, "boxes without an area",
                                       "kept as written; training leaves them out"};
inline constexpr FindingKind kCornersSwapped{
    "label-swapped", Severity::warning,
    "boxes whose first corner lies right of or below the second", "the corners are put in order"};
inline constexpr FindingKind kSizeDiffers{
    "label-size", Severity::warning, "labels for another image size than the file has",
    "the file's size is taken and the numbers stay: was the image resized after labelling?"};
inline constexpr FindingKind kImageUnlabelled{
    "image-unlabelled", Severity::warning, "images without a label file",
    "taken as images without objects, as the format says: is their labelling still to be done?"};

// Labels and images that are left out.
inline constexpr FindingKind kLabelUnreadable{
    "label-unreadable", Severity::error, "labels that cannot be read", "the object is left out"};
inline constexpr FindingKind kFileUnreadable{
    "label-file-unreadable", Severity::error, "label files that cannot be read",
    "the image is left out, since its objects are not known"};
inline constexpr FindingKind kClassUnknown{"label-class", Severity::error,
                                           "labels of a class that is not there",
                                           "the object is left out"};
inline constexpr FindingKind kLabelWithoutImage{"label-without-image", Severity::error,
                                                "labels without an image", "they are left out"};
inline constexpr FindingKind kImageUnreadable{"image-unreadable", Severity::error,
                                              "image files whose size cannot be read",
                                              "the image is left out with its objects"};
inline constexpr FindingKind kImageUnannotated{
    "image-unannotated", Severity::warning, "images without a label",
    "left out, since nothing says that they hold no objects; an empty label does"};
inline constexpr FindingKind kShapeUnusable{"label-shape", Severity::error,
                                            "shapes that are no polygon of three points or more",
                                            "the object is left out"};
inline constexpr FindingKind kKeypointsDropped{"label-keypoints", Severity::note,
                                               "keypoints beside boxes",
                                               "the boxes are read, the keypoints are not"};
inline constexpr FindingKind kMaskUnmatched{"mask-unmatched", Severity::warning,
                                            "masks of no object that is annotated",
                                            "they are left out"};
inline constexpr FindingKind kMaskUnreadable{"mask-unreadable", Severity::error,
                                             "masks that cannot be used", "they are left out"};

/// Adds a finding at a place such as "labels/a.txt:3"; `line` 0 = the whole file.
inline void tell(coco::Findings& findings, const FindingKind& kind, std::string_view file, int line,
                 std::string what = {}) {
  findings.add(kind, {.file = line > 0 ? fmt::format("{}:{}", file, line) : std::string(file),
                      .what = std::move(what)});
}

}  // namespace millrace::formats
