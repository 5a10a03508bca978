// Large annotation files, read in pieces by all threads of the caller's arena.
#pragma once

#include <cstddef>
#include <optional>

#include "millrace/base/files.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Where a second thread gains more than the cutting costs.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// Reads the list of annotations in pieces (see `read_list`), so that no text is held for long.
/// Nothing where that fails: then a reader that goes through the file in order gives the records or
/// says what is wrong. The records are the same for any size of pieces and number of threads.
std::optional<Records> read_pieces(const InputFile& file, std::size_t piece_bytes);

}  // namespace millrace::coco
