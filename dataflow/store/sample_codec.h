// Samples as bytes, for record stores, caches and sockets. Pure; any thread.
//
// A msgpack map. Rows of numbers are binary, little-endian, as numpy.frombuffer reads them:
//
//   "schema": 1   "id": integer   "path": text
//   "size": [width, height]       of the original image, pixels; 0: not known
//   "scale": [x, y]
//   "boxes": float32 x1 y1 x2 y2 each   "classes": int32   "crowd": uint8, 0 or 1
//   "shapes": for each object nil, a list of polygons (float64 x y ...),
//             or {"size": [h, w], "counts": uint32}
//   "pixels": nil, or the pixels held and what is due (to be mirrored and resized; see LazyImage):
//             {"held": [width, height], "rgb": bytes, "mirrored": bool, "size": [width, height]},
//             and "pillow": true if Pillow's arithmetic is due
//   "file": nil or {"digest": XXH3, "bytes": the image file's bytes}
#pragma once

#include <string>
#include <string_view>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

std::string encode(const Sample& sample);

/// The sample in such bytes; `where` names them in messages. Throws DataError for anything that
/// `encode` cannot have written. Takes memory in proportion to the bytes.
Sample decode_sample(std::string_view bytes, const std::string& where);

}  // namespace millrace
