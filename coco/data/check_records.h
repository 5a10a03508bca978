// An annotation file read for its faults.
#pragma once

#include <filesystem>
#include <memory>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/findings.h"

namespace millrace::coco {

/// As `read_dataset`, but reports each record that breaks its rules and leaves it out. nullptr, and
/// a finding with the byte, if the file as a whole cannot be read.
std::shared_ptr<const Dataset> check_records(const std::filesystem::path& json, Findings& findings);

}  // namespace millrace::coco
