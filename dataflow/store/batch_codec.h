// Encodes batches as bytes, for records on disk and for sockets. Pure and thread-safe.
//
// A batch is a msgpack header and a separate frame of raw bytes, which is the batch's own memory:
//
//   "schema": 1   "digest": XXH3 of the batch
//   "size": [width, height]       of the padded images, pixels
//   "images": for each image
//     {"id": integer, "original": [width, height], "size": [width, height], "scale": [x, y],
//      "boxes", "classes", "crowd", "shapes": as in sample_codec.h}
//   the frame: the pixels, (images, height, width, 3) RGB bytes
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Returns the header of a batch; its frame is the batch's own memory.
std::string encode_header(const Batch& batch);

/// Bytes of which a batch can share ownership.
struct Frame {
  std::shared_ptr<std::uint8_t[]> bytes;
  std::size_t size = 0;
};

/// Returns the batch of a header and its pixels, whose memory it shares; `where` is the prefix of
/// error messages. Throws DataError for other bytes or a wrong digest. Allocates memory in
/// proportion to the bytes.
Batch decode_batch(std::string_view header, const Frame& pixels, const std::string& where);

}  // namespace millrace
