// The folder in COCO's layout that a first configuration trains on.
#pragma once

#include <filesystem>
#include <vector>

#include "millrace/formats/format.h"

namespace millrace::cli {

/// How images came into a folder.
struct PlacedImages {
  std::size_t linked = 0, copied = 0;
};

/// Writes `root`/annotations/instances_<name>.json and `root`/<name>/ for a split. Images become
/// links to where they lie, relative ones as seen from `final_root`, where `root` will be once it
/// is whole; on a file system without links, copies. A name that leads out of its folder is
/// replaced by one that does not. Throws Error.
PlacedImages write_split(const formats::Split& split, const std::filesystem::path& root,
                         const std::filesystem::path& final_root);

}  // namespace millrace::cli
