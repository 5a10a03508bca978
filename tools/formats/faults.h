// What can be wrong with labels, as readers report it.
#pragma once

#include <string>
#include <string_view>

#include "millrace/coco/data/findings.h"

namespace millrace::formats {

/// What was read and is kept as written: `trainer doctor` says what training makes of it.
extern const coco::FindingKind kBoxOutside, kBoxEmpty, kCornersSwapped, kSizeDiffers,
    kImageUnlabelled;
/// What is left out.
extern const coco::FindingKind kLabelUnreadable, kFileUnreadable, kClassUnknown, kLabelWithoutImage,
    kImageUnreadable, kImageUnannotated, kShapeUnusable, kKeypointsDropped, kMaskUnmatched,
    kMaskUnreadable;

/// Adds a finding at "labels/a.txt:3"; `line` 0: of the whole file.
void tell(coco::Findings& findings, const coco::FindingKind& kind, std::string_view file, int line,
          std::string what = {});

/// "labels/a.txt:3"
std::string place_text(std::string_view file, int line);

}  // namespace millrace::formats
