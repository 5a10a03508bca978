// The image files of a split: whether each is there, can be read and is what its annotations say.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "millrace/base/digest.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/doctor/findings.h"

namespace millrace {

enum class ImageCheck {
  decode,  // every pixel, as training would
  heads,   // the beginning of each JPEG; other files as a whole
};

/// What tells one image file from most others: its length and the digest of its first bytes.
struct FileMark {
  std::uint64_t bytes = 0;  // 0: it could not be read, or is empty
  WideDigest head;
};

/// Checks the file of each image, by all threads of the caller's arena, which call `on_image` after
/// each. Returns their marks, in the order of the images.
std::vector<FileMark> check_images(const DataSplit& split, ImageCheck how, coco::Findings& findings,
                                   const std::function<void()>& on_image);

/// Checks the names: files that two images share, and image files beside the split's own that no
/// image names.
void check_file_names(const DataSplit& split, coco::Findings& findings);

}  // namespace millrace
