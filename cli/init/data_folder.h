// Writes the folder of a first configuration, with data in COCO's layout.
#pragma once

#include <cstddef>
#include <filesystem>

#include "millrace/cli/init/source_data.h"
#include "millrace/tools/data/first_config.h"

namespace millrace::cli {

/// Writes `out` completely or not at all: config.toml, its base.toml, and data/ with both splits
/// unless the original data are used in place. Images are symbolic links; on a file system without
/// links they are copies, which `draft` records. Returns the number of copies. Throws Error.
std::size_t write_folder(const std::filesystem::path& out, const SourceData& data,
                         advice::Draft& draft);

}  // namespace millrace::cli
