// Choices of a first configuration that depend on its data and machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "millrace/cli/init/source_data.h"
#include "millrace/tools/data/first_config.h"
#include "millrace/tools/data/network.h"

namespace millrace::cli {

/// Returns the detector to use if none was requested: that of the weights, or one that the labels
/// allow.
std::string choose_type(const SourceData& data, const std::optional<advice::WeightFacts>& weights);

/// Sets the batch size and the training plan that follows from it.
void set_batch(advice::Draft& draft, std::int64_t images);

/// Chooses image sizes, anchors, batch size and plan, and counts the images and objects for
/// training and evaluation. REQUIRES: `draft` has its file, type, network and machine; `data` has
/// both splits. Throws ConfigError if the detector has no anchors.
void choose(advice::Draft& draft, const SourceData& data);

}  // namespace millrace::cli
