// Annotation files of which some records break the rules, read without these.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/json.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// Told of each record that is left out, in the order of the file.
struct FaultListener {
  std::function<void(const RecordFault&)> unreadable;       // by itself
  std::function<void(const Contradiction&)> contradiction;  // for the others; see `assemble`
};

/// Reads a file by the rules of `read_dataset`, but goes on after each record that breaks them.
/// Throws Error, with the byte, where the file as a whole cannot be read, and what the listener
/// throws. By all threads of the caller's arena.
std::shared_ptr<const Dataset> read_sound_records(const std::filesystem::path& json,
                                                  const FaultListener& listener);

}  // namespace millrace::coco
