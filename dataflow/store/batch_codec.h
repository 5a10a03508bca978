// Batches as bytes, for records on disk and for sockets. Pure; any thread.
//
// A msgpack header, and a frame of raw bytes beside it, which is the batch's own memory:
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

/// The header of a batch, whose frame is its own memory.
std::string encode_header(const Batch& batch);

/// Bytes that a batch can take over.
struct Frame {
  std::shared_ptr<std::uint8_t[]> bytes;
  std::size_t size = 0;
};

/// The batch of a header and its pixels, whose memory it shares; `where` names them in messages.
/// Throws DataError for other bytes or a wrong digest. Takes memory in proportion to the bytes.
Batch decode_batch(std::string_view header, const Frame& pixels, const std::string& where);

}  // namespace millrace
