// Recipes of MMDetection (https://github.com/open-mmlab/mmdetection), 2.x and 3.x.
#pragma once

#include "millrace/migration/files/foreign_config.h"
#include "millrace/migration/translation/imported_config.h"

namespace millrace {

/// Translates a recipe that was read before. Throws ConfigError naming file and line for another
/// model than one of ours.
ImportedConfig import_mmdetection(const ForeignConfig& config, const ImportOptions& options);

}  // namespace millrace
