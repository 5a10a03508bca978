// Converts annotations of other tools to COCO's format.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "millrace/coco/data/findings.h"
#include "millrace/tools/formats/format.h"

namespace millrace::formats {

/// The result of an import.
struct Imported {
  Detected from;              // `why` is empty if the caller gave the format
  std::vector<Split> splits;  // as read from the source
};

/// Reads `source` in the format `from`, or in the detected format if `from` is empty, and writes it
/// in COCO's layout to the new folder `out`. `out` appears only when it is complete. The same input
/// gives the same bytes. Images become hard links if the file system supports it, otherwise copies;
/// `source` does not change. Throws ConfigError for an unknown or ambiguous format or if `out`
/// exists, and Error for files that cannot be read or written.
Imported import_folder(const std::filesystem::path& source, const std::filesystem::path& out,
                       std::string_view from, coco::Findings& findings);

}  // namespace millrace::formats
