// The records of an annotation file, each by itself and beside the others.
#pragma once

#include <filesystem>
#include <memory>

#include "millrace/coco/data/annotations.h"
#include "millrace/doctor/findings.h"

namespace millrace::coco {

/// Reads a file by the rules of `read_dataset`, but goes on after each record that breaks them: it
/// is told and left out. nullptr, and a finding with the byte, where the file as a whole cannot be
/// read. By all threads of the caller's arena.
std::shared_ptr<const Dataset> check_records(const std::filesystem::path& json, Findings& findings);

}  // namespace millrace::coco
