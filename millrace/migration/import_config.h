// Recipes of other code bases as configurations of ours.
#pragma once

#include <filesystem>

#include "millrace/migration/translation/imported_config.h"

namespace millrace {

/// Reads a recipe: detectron2's .yaml, with overrides `KEY VALUE`; MMDetection's .py, of 2.x
/// or 3.x, with overrides `key=value`. Values that are our defaults stand in `tree`, too. Throws
/// ConfigError naming file and line for what cannot be read, and for another model than one of
/// ours; Error for files that cannot be read.
ImportedConfig import_config(const std::filesystem::path& file, const ImportOptions& options);

}  // namespace millrace
