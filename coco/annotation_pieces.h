// Large annotation files, read in pieces by all threads of the caller's arena.
#pragma once

#include <cstddef>
#include <optional>

#include "base/files.h"
#include "coco/records.h"

namespace millrace::coco {

/// Where a second thread gains more than the cutting costs.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// Cuts the list of annotations between records and reads each piece by itself, so that no text is held for long.
/// Where records begin is a guess ("}, {"), but none that is trusted: a piece that is a list of whole records proves
/// that the next one begins at a record. Nothing where the guess fails or anything is wrong with the file: then a reader
/// that goes through it in order gives the records or says what is wrong. The records are the same for any
/// size of pieces and number of threads.
std::optional<Records> read_pieces(const InputFile& file, std::size_t piece_bytes);

}  // namespace millrace::coco
