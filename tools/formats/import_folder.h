// From an annotation format of another tool into COCO's.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "millrace/coco/data/findings.h"
#include "millrace/tools/formats/format.h"

namespace millrace::formats {

/// What was read and written.
struct Imported {
  Detected from;              // `why` is empty if the format was given
  std::vector<Split> splits;  // as read, from the source
};

/// Reads `source`, as `from` or, if that is empty, as what it looks like, and writes it in COCO's
/// layout into the new folder `out`, whole or not at all; the same input gives the same bytes.
/// Images become hard links if the file system can, else copies; `source` does not change.
/// Throws ConfigError for an unknown or unclear format or if `out` exists, Error for what cannot be
/// read or written.
Imported import_folder(const std::filesystem::path& source, const std::filesystem::path& out,
                       std::string_view from, coco::Findings& findings);

}  // namespace millrace::formats
