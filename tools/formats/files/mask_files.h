// PNG masks in a folder, and the images that they belong to.
#pragma once

#include <map>
#include <vector>

#include "millrace/tools/formats/files/image_finder.h"
#include "millrace/tools/formats/files/listing.h"

namespace millrace::formats {

/// What the values of masks mean.
enum class MaskKind {
  instances,   // each value an object
  cityscapes,  // class * 1000 + number
  voc,         // each palette position an object, 255 none
  trimaps,     // Oxford-IIIT pets: 1 the object, 2 background, 3 unknown
  objects,     // one file for each object, anything but 0 is inside
};

struct MaskFiles {
  MaskKind kind = MaskKind::instances;
  std::map<Place, std::vector<Place>> masks;  // of each image; in order
  std::vector<Place> without_image;
  std::vector<Place> unmasked;  // images beside others that have masks
};

/// The PNG files in folders that are named as masks are.
std::vector<Place> mask_places(const Listing& folder);

/// Assigns masks to images by name: masks/NAME.png, masks/NAME_mask.png and their like, or
/// masks/NAME/*.png, NAME/masks/*.png.
MaskFiles find_masks(const Listing& folder);

}  // namespace millrace::formats
