// Readers of annotation and results files, in pieces on all threads of the caller's arena, or in
// part.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "millrace/base/files.h"
#include "millrace/coco/data/detections.h"
#include "millrace/coco/data/json.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Callbacks for each record that is left out, in file order.
struct FaultListener {
  std::function<void(const RecordFault&)> unreadable;  // invalid in itself
  // Conflicts with other records; see `assemble`.
  std::function<void(const RecordConflict&)> on_conflict;
};

/// Reads a file with the rules of `read_dataset`, but leaves out each invalid record. Throws Error
/// with the byte if the file as a whole cannot be read, and any exception of the listener.
std::shared_ptr<const Dataset> read_valid_records(const std::filesystem::path& json,
                                                  const FaultListener& listener);

/// Bytes of a piece. Its text and records fit into a core's L2 cache and need few pages.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 18;

/// Reads a data set like the public `read_dataset`. For a file of at least `kLeastSpilled` bytes,
/// the arrays are stored in anonymous files in the folder `spools`.
std::shared_ptr<const Dataset> read_dataset(const std::filesystem::path& json,
                                            const std::filesystem::path& spools);

/// Smaller files, in bytes, fit into memory everywhere and load faster there.
inline constexpr std::uint64_t kLeastSpilled = std::uint64_t{512} << 20;

/// Returns whether a file is large enough to be read in pieces. False for pipes, which can be read
/// only once.
bool is_worth_pieces(const std::filesystem::path& file);

/// Throws the Error of the first unreadable record, like reading in order, for a file of any size.
/// Does nothing if all are readable, or if the file as a whole cannot be read.
void throw_first_fault(const InputFile& file, const std::string& source,
                       const std::optional<Spill>& spill = {});

/// Reads images and annotations, or results, in pieces (see `read_list`), so that no text stays in
/// memory. Returns nullopt on failure; reading the file in order then gives the records or the
/// error. The result does not depend on the piece size or the number of threads. With `faults`,
/// unreadable records are left out and reported there in file order.
std::optional<GatheredRecords> read_pieces(const InputFile& file, std::size_t piece_bytes,
                                           const std::optional<Spill>& spill = {},
                                           std::vector<RecordFault>* faults = nullptr);
/// Reads detections in pieces; `images` as in `read_detections`.
std::optional<Detections> read_result_pieces(const InputFile& file, std::size_t piece_bytes,
                                             const Dataset* images);

}  // namespace millrace::coco
