// Annotation and results files, read by all threads of the caller's arena in pieces or in part.
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

/// Called for each record that is left out, in the order of the file.
struct FaultListener {
  std::function<void(const RecordFault&)> unreadable;       // by itself
  std::function<void(const Contradiction&)> contradiction;  // beside the others; see `assemble`
};

/// Reads a file by the rules of `read_dataset`, but leaves out each record that breaks them. Throws
/// Error, with the byte, if the file as a whole cannot be read, and what the listener throws.
std::shared_ptr<const Dataset> read_sound_records(const std::filesystem::path& json,
                                                  const FaultListener& listener);

/// Text and records of a piece stay in a core's second cache, and take few pages.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 18;

/// As the public `read_dataset`; the arrays of a file of `kLeastSpilled` bytes or more lie in files
/// without names in the folder `spools`.
std::shared_ptr<const Dataset> read_dataset(const std::filesystem::path& json,
                                            const std::filesystem::path& spools);

/// What fits anywhere, and loads faster in memory.
inline constexpr std::uint64_t kLeastSpilled = std::uint64_t{512} << 20;

/// Whether a file is so large that it is read in pieces. No pipe is: it can be read only once.
bool is_worth_pieces(const std::filesystem::path& file);

/// Throws the Error of the first record that cannot be read, as reading in order would, of a file
/// of any size; does nothing if there is none, or the file as a whole cannot be read.
void tell_first_fault(const InputFile& file, const std::string& source,
                      const std::optional<Spill>& spill = {});

/// Reads images and annotations, or results, in pieces (see `read_list`), so that no text is held
/// for long. nullopt if that fails: then reading the file in order gives the records or the error.
/// The same for any size of pieces and number of threads. With `faults` records that cannot be read
/// are left out and reported there, in the order of the file.
std::optional<GatheredRecords> read_pieces(const InputFile& file, std::size_t piece_bytes,
                                           const std::optional<Spill>& spill = {},
                                           std::vector<RecordFault>* faults = nullptr);
/// `images` as in `read_detections`.
std::optional<Detections> read_result_pieces(const InputFile& file, std::size_t piece_bytes,
                                             const Dataset* images);

}  // namespace millrace::coco
