// Large results files, read in pieces by all threads of the caller's arena.
#pragma once

#include <cstddef>
#include <optional>

#include "millrace/base/files.h"
#include "millrace/coco/data/detections.h"

namespace millrace::coco {

/// Reads the detections in pieces, see `read_list`; `images` as in `read_detections`. Nothing where
/// that fails: then a reader that goes through the file in order gives them or says what is wrong.
/// The same for any size of pieces and number of threads.
std::optional<Detections> read_result_pieces(const InputFile& file, std::size_t piece_bytes,
                                             const Dataset* images);

}  // namespace millrace::coco
