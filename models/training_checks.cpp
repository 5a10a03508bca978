#include "millrace/models/training_checks.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {

void require_objects(const TrainingFacts& facts) {
  if (!facts.count_objects) return;
  const auto counts = facts.count_objects();
  if (counts.objects == 0)
    throw ConfigError(
        fmt::format("no objects to train on: none of the {} has an object that is not a crowd (the "
                    "source \"folder\" has no objects)",
                    counted(counts.samples, "image")));
}

std::optional<std::string> frozen_backbone_warning(const TrainingFacts& facts,
                                                   const std::string& type, Norm norm,
                                                   std::int64_t freeze_at, Norm trained_norm) {
  if (!facts.starts_random) return std::nullopt;
  if (norm == Norm::frozen_bn || norm == Norm::frozen_stats)
    return fmt::format(
        "model.backbone.norm = \"{}\" without initial weights (model.weights is ''): its "
        "statistics stay at mean 0 and variance 1, so activations are unbounded and {} is likely "
        "to diverge in its first steps; set model.weights, or set model.backbone.norm = \"{}\" and "
        "model.backbone.freeze_at = 0",
        value_name(norm), type, value_name(trained_norm));
  if (freeze_at > 0)
    return fmt::format(
        "model.backbone.freeze_at = {} freezes layers at random values (model.weights is ''); set "
        "model.weights, or set model.backbone.freeze_at = 0",
        freeze_at);
  return std::nullopt;
}

std::optional<std::string> norm_by_part_warning(const std::string& names,
                                                const TrainingFacts& facts) {
  if (facts.in_micro_batches)
    throw ConfigError(
        fmt::format("{} \"bn\", which normalises each micro-batch separately (train.micro_batch); "
                    "use \"sync_bn\" to normalise over all images of a step",
                    names));
  if (facts.ranks == 1) return std::nullopt;
  return fmt::format(
      "{} \"bn\": each of the {} ranks normalises over its own images, so the model differs from "
      "that of one process; \"sync_bn\" normalises over the images of all ranks, as one process "
      "does",
      names, facts.ranks);
}

}  // namespace millrace
