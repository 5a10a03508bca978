// Encodes samples as bytes, for record stores, caches and sockets. Pure and thread-safe.
//
// A sample is a msgpack map. Rows of numbers are binary, little-endian, as numpy.frombuffer reads
// them:
//
//   "schema": 1   "id": integer   "path": text
//   "size": [width, height]       of the original image, pixels; 0 = unknown
//   "scale": [x, y]
//   "boxes": float32 x1 y1 x2 y2 each   "classes": int32   "crowd": uint8, 0 or 1
//   "shapes": for each object nil, a list of polygons (float64 x y ...),
//             or {"size": [h, w], "counts": uint32}
//   "pixels": nil, or the stored pixels and pending changes (mirror, resize; see LazyImage):
//             {"held": [width, height], "rgb": bytes, "mirrored": bool, "size": [width, height]},
//             and "pillow": true if Pillow's arithmetic is to be used
//   "file": nil or {"digest": XXH3, "bytes": the image file's bytes}
#pragma once

#include <string>
#include <string_view>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

std::string encode(const Sample& sample);

/// Decodes a sample; `where` is the prefix of error messages. Throws DataError for anything that
/// `encode` cannot have written. Allocates memory in proportion to the bytes.
Sample decode_sample(std::string_view bytes, const std::string& where);

}  // namespace millrace
