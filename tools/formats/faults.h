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
                                         "boxes that extend more than one pixel beyond their image",
                                         "kept as written; training clips them"};
inline constexpr FindingKind kBoxEmpty{"label-empty", Severity::warning, "boxes with no area",
                                       "kept as written; training omits them"};
inline constexpr FindingKind kCornersSwapped{
    "label-swapped", Severity::warning,
    "boxes whose first corner is to the right of or below the second", "the corners are swapped"};
inline constexpr FindingKind kSizeDiffers{"label-size", Severity::warning,
                                          "labels for a different size than that of the image file",
                                          "the file's size is used and the coordinates are "
                                          "unchanged: was the image resized after labelling?"};
inline constexpr FindingKind kImageUnlabelled{
    "image-unlabelled", Severity::warning, "images without a label file",
    "read as images without objects, as the format defines: are they still to be labelled?"};

// Labels and images that are left out.
inline constexpr FindingKind kLabelUnreadable{
    "label-unreadable", Severity::error, "labels that cannot be read", "the object is skipped"};
inline constexpr FindingKind kFileUnreadable{"label-file-unreadable", Severity::error,
                                             "label files that cannot be read",
                                             "the image is skipped, since its objects are unknown"};
inline constexpr FindingKind kClassUnknown{"label-class", Severity::error,
                                           "labels of an unknown class", "the object is skipped"};
inline constexpr FindingKind kLabelWithoutImage{"label-without-image", Severity::error,
                                                "labels without an image", "they are skipped"};
inline constexpr FindingKind kImageUnreadable{"image-unreadable", Severity::error,
                                              "image files whose size cannot be read",
                                              "the image is skipped with its objects"};
inline constexpr FindingKind kImageUnannotated{
    "image-unannotated", Severity::warning, "images without a label",
    "skipped, since they may contain objects; an empty label marks an image without objects"};
inline constexpr FindingKind kShapeUnusable{"label-shape", Severity::error,
                                            "shapes that are not polygons of three or more points",
                                            "the object is skipped"};
inline constexpr FindingKind kKeypointsDropped{"label-keypoints", Severity::note,
                                               "keypoints beside boxes", "only the boxes are read"};
inline constexpr FindingKind kMaskUnmatched{
    "mask-unmatched", Severity::warning, "masks without an annotated object", "they are skipped"};
inline constexpr FindingKind kMaskUnreadable{"mask-unreadable", Severity::error,
                                             "masks that cannot be used", "they are skipped"};

/// Adds a finding at a place such as "labels/a.txt:3"; `line` 0 = the whole file.
inline void add_finding(coco::Findings& findings, const FindingKind& kind, std::string_view file,
                        int line, std::string what = {}) {
  findings.add(kind, {.file = line > 0 ? fmt::format("{}:{}", file, line) : std::string(file),
                      .what = std::move(what)});
}

}  // namespace millrace::formats
