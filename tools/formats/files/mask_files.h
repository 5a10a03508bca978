// Finds PNG masks in a folder and their images.
#pragma once

#include <map>
#include <vector>

#include "millrace/tools/formats/files/image_finder.h"
#include "millrace/tools/formats/files/listing.h"

namespace millrace::formats {

/// The meaning of the values of masks.
enum class MaskKind {
  instances,   // one value per object
  cityscapes,  // class * 1000 + number of the object
  voc,         // one palette index per object, 255 for none
  trimaps,     // Oxford-IIIT pets: 1 object, 2 background, 3 unknown
  objects,     // one file per object; nonzero values are inside
};

struct MaskFiles {
  MaskKind kind = MaskKind::instances;
  std::map<RelativePath, std::vector<RelativePath>> masks;  // masks of each image, in order
  std::vector<RelativePath> without_image;
  std::vector<RelativePath> unmasked;  // images without a mask in folders of images with masks
};

/// Returns the PNG files in folders whose names denote masks.
std::vector<RelativePath> mask_places(const Listing& folder);

/// Assigns masks to images by name: masks/NAME.png, masks/NAME_mask.png and similar, or
/// masks/NAME/*.png, NAME/masks/*.png.
MaskFiles find_masks(const Listing& folder);

}  // namespace millrace::formats
