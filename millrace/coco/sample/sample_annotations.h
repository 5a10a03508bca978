// What COCO would say of a planned scene. Pure; any thread may call it.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/coco/sample/sample_scene.h"

namespace millrace::coco {

/// The things of a scene as COCO annotations: JSON objects with commas between them, nothing for an
/// empty scene. Polygons where they can say it, one for each part; run lengths for holes and
/// crowds. Area and box are those of the segmentation as written. Ids are 100 x image_id and up.
std::string annotate(const Scene& scene, std::int64_t image_id);

}  // namespace millrace::coco
