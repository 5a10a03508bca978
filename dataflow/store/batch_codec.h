// Batches as bytes, for records on disk and for sockets. Pure; any thread.
//
// A msgpack header, and frames of raw bytes beside it, which are the batch's own memory:
//
//   "schema": 1   "digest": XXH3 of the batch
//   "size": [width, height]       of the padded images, pixels
//   "images": for each image
//     {"id": integer, "original": [width, height], "size": [width, height], "scale": [x, y],
//      "boxes", "classes", "crowd", "shapes": as in sample_codec.h}
//   frame 0: the pixels, (images, height, width, 3) RGB bytes
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// `frames` lie in the batch, which must outlive them.
struct EncodedBatch {
  std::string header;
  std::vector<std::string_view> frames;
};
EncodedBatch encode(const Batch& batch);

/// Bytes that a batch can take over.
struct Frame {
  std::shared_ptr<std::uint8_t[]> bytes;
  std::size_t size = 0;
};

/// The batch of a header and its frames, whose memory it shares; `where` names them in messages.
/// Throws DataError for other bytes or a wrong digest. Takes memory in proportion to the bytes.
Batch decode_batch(std::string_view header, const std::vector<Frame>& frames,
                   const std::string& where);

}  // namespace millrace
