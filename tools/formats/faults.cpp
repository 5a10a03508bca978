#include "millrace/tools/formats/faults.h"

#include <fmt/format.h>

#include <utility>

namespace millrace::formats {

using coco::FindingKind;
using enum coco::Severity;

constexpr FindingKind kBoxOutside{"label-outside", warning,
                                  "boxes that reach more than a pixel beyond their image",
                                  "kept as written; training clips them"};
constexpr FindingKind kBoxEmpty{"label-empty", warning, "boxes without an area",
                                "kept as written; training leaves them out"};
constexpr FindingKind kCornersSwapped{"label-swapped", warning,
                                      "boxes whose first corner lies right of or below the second",
                                      "the corners are put in order"};
constexpr FindingKind kSizeDiffers{
    "label-size", warning, "labels for another image size than the file has",
    "the file's size is taken and the numbers stay: was the image resized after labelling?"};
constexpr FindingKind kImageUnlabelled{
    "image-unlabelled", warning, "images without a label file",
    "taken as images without objects, as the format says: is their labelling still to be done?"};
constexpr FindingKind kLabelUnreadable{"label-unreadable", error, "labels that cannot be read",
                                       "the object is left out"};
constexpr FindingKind kFileUnreadable{"label-file-unreadable", error,
                                      "label files that cannot be read",
                                      "the image is left out, since its objects are not known"};
constexpr FindingKind kClassUnknown{"label-class", error, "labels of a class that is not there",
                                    "the object is left out"};
constexpr FindingKind kLabelWithoutImage{"label-without-image", error, "labels without an image",
                                         "they are left out"};
constexpr FindingKind kImageUnreadable{"image-unreadable", error,
                                       "image files whose size cannot be read",
                                       "the image is left out with its objects"};
constexpr FindingKind kImageUnannotated{
    "image-unannotated", warning, "images without a label",
    "left out, since nothing says that they hold no objects; an empty label does"};
constexpr FindingKind kShapeUnusable{"label-shape", error,
                                     "shapes that are no polygon of three points or more",
                                     "the object is left out"};
constexpr FindingKind kKeypointsDropped{"label-keypoints", note, "keypoints beside boxes",
                                        "the boxes are read, the keypoints are not"};
constexpr FindingKind kMaskUnmatched{"mask-unmatched", warning,
                                     "masks of no object that is annotated", "they are left out"};
constexpr FindingKind kMaskUnreadable{"mask-unreadable", error, "masks that cannot be used",
                                      "they are left out"};

std::string place_text(std::string_view file, int line) {
  return line > 0 ? fmt::format("{}:{}", file, line) : std::string(file);
}

void tell(coco::Findings& findings, const FindingKind& kind, std::string_view file, int line,
          std::string what) {
  findings.add(kind, {.file = place_text(file, line), .what = std::move(what)});
}

}  // namespace millrace::formats
