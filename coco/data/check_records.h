// Reads an annotation file and reports its faults.
#pragma once

#include <filesystem>
#include <memory>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/findings.h"

namespace millrace::coco {

/// Reads a data set like `read_dataset`, but reports each invalid record to `findings` and leaves
/// it out. If the file as a whole cannot be read, returns nullptr and adds a finding with the byte.
std::shared_ptr<const Dataset> check_records(const std::filesystem::path& json, Findings& findings);

}  // namespace millrace::coco
