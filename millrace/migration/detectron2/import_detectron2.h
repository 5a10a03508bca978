// Recipes of detectron2 (https://github.com/facebookresearch/detectron2), version 2 of its keys.
#pragma once

#include "millrace/migration/files/value.h"
#include "millrace/migration/translation/imported_config.h"

namespace millrace {

/// Translates a recipe that was read before. Throws ConfigError naming file and line for another
/// model than one of ours.
ImportedConfig import_detectron2(const Value& recipe, const ImportOptions& options);

}  // namespace millrace
