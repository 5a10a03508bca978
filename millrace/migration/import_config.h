// Recipes of other code bases as configurations of ours.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/migration/translation.h"

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

/// Reads a recipe: detectron2's .yaml, with overrides `KEY VALUE`; MMDetection's .py, of 2.x
/// or 3.x, with overrides `key=value`. Values that are our defaults stand in `tree`, too. Throws
/// ConfigError naming file and line for what cannot be read, and for another model than one of
/// ours; Error for files that cannot be read.
ImportedConfig import_config(const std::filesystem::path& file, const ImportOptions& options);

/// The same of a tree that was read before.
ImportedConfig import_detectron2(Value tree, const ImportOptions& options);
struct ForeignConfig;
ImportedConfig import_mmdetection(const ForeignConfig& config, const ImportOptions& options);

/// Images of COCO's train2017: all, and those with an object.
constexpr std::int64_t kCocoTrain2017 = 118287;
constexpr std::int64_t kCocoTrain2017WithObjects = 117266;

}  // namespace millrace
