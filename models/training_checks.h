// Checks of a training before its first step, for Detector::check_facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "millrace/models/detector/detector.h"
#include "millrace/models/layers/layers.h"

namespace millrace {

/// Throws ConfigError if no image to train on has an object that is no crowd.
void require_objects(const TrainingFacts& facts);

/// A warning where [model.backbone], a network of that `type`, freezes layers that start at random:
/// `norm` and `freeze_at` are its options, `trained_norm` is a norm to propose instead.
std::optional<std::string> frozen_backbone_warning(const TrainingFacts& facts,
                                                   const std::string& type, Norm norm,
                                                   std::int64_t freeze_at, Norm trained_norm);

/// A warning about batch norms, named by their options ("model.norm is"), that see only one rank's
/// images; none in a single process. Throws ConfigError for train.micro_batch, of whose parts each
/// would be normalised alone.
std::optional<std::string> norm_by_part_warning(const std::string& names,
                                                const TrainingFacts& facts);

}  // namespace millrace
