// Checks before the first training step, for Detector::check_facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "millrace/models/detector/detector.h"
#include "millrace/models/layers/layers.h"

namespace millrace {

/// Throws ConfigError if no training image has an object that is not a crowd region.
void require_objects(const TrainingFacts& facts);

/// Returns a warning if [model.backbone], a network of that `type`, freezes layers that start at
/// random. `norm` and `freeze_at` are its options; the warning proposes `trained_norm`.
std::optional<std::string> frozen_backbone_warning(const TrainingFacts& facts,
                                                   const std::string& type, Norm norm,
                                                   std::int64_t freeze_at, Norm trained_norm);

/// Returns a warning if batch norms, named by their options ("model.norm is"), would see the images
/// of one rank only; nullopt in a single process. Throws ConfigError with train.micro_batch, as
/// each micro-batch would be normalised alone.
std::optional<std::string> norm_by_part_warning(const std::string& names,
                                                const TrainingFacts& facts);

}  // namespace millrace
