#include "millrace/models/training_checks.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {

void require_objects(const TrainingFacts& facts) {
  if (!facts.count_objects) return;
  const auto counts = facts.count_objects();
  if (counts.objects == 0)
    throw ConfigError(fmt::format(
        "there is nothing to learn: none of the {} to train on has an object that is no crowd (a "
        "source \"folder\" never has any)",
        counted(counts.samples, "image")));
}

std::optional<std::string> frozen_backbone_warning(const TrainingFacts& facts,
                                                   const std::string& type, Norm norm,
                                                   std::int64_t freeze_at, Norm trained_norm) {
  if (!facts.starts_random) return std::nullopt;
  if (norm == Norm::frozen_bn || norm == Norm::frozen_stats)
    return fmt::format(
        "model.backbone.norm = \"{}\" starts without weights (model.weights is ''): its statistics "
        "stay at mean 0 and variance 1, so nothing keeps values in bounds, and {} is likely to "
        "diverge in its first steps; name weights, or set model.backbone.norm = \"{}\" and "
        "model.backbone.freeze_at = 0",
        value_name(norm), type, value_name(trained_norm));
  if (freeze_at > 0)
    return fmt::format(
        "model.backbone.freeze_at = {} freezes layers at random values (model.weights is ''): name "
        "weights, or set model.backbone.freeze_at = 0",
        freeze_at);
  return std::nullopt;
}

std::optional<std::string> norm_by_part_warning(const std::string& names,
                                                const TrainingFacts& facts) {
  if (facts.in_micro_batches)
    throw ConfigError(fmt::format(
        "{} \"bn\", which would normalise by each micro-batch alone (train.micro_batch): "
        "\"sync_bn\" normalises by all of a step",
        names));
  if (facts.ranks == 1) return std::nullopt;
  return fmt::format(
      "{} \"bn\": each of the {} ranks normalises by its own images, which trains another model "
      "than one process does; \"sync_bn\" normalises by those of all ranks, as one process would",
      names, facts.ranks);
}

}  // namespace millrace
