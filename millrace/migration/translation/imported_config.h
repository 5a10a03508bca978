// What goes into the translation of a recipe beside its files, and what comes out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/migration/translation/translation.h"

namespace millrace {

/// What a recipe does not say by itself.
struct ImportOptions {
  std::vector<std::string> overrides;  // as their command lines take them
  std::optional<std::int64_t> gpus;    // that the recipe is for; nothing: as its code base has it
  std::optional<std::int64_t> images;  // of the training split, that turn iterations into epochs
};

struct ImportedConfig {
  std::string from;  // "detectron2", "MMDetection"
  Config tree;       // each value has the place in their files as its origin
  std::vector<LeftOut> left_out;
};

}  // namespace millrace
