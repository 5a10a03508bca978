// What a first configuration chooses for its data and machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "millrace/cli/init/source_data.h"
#include "millrace/tools/data/first_config.h"
#include "millrace/tools/data/network.h"

namespace millrace::cli {

/// The detector where none was asked for: that of the weights, or what the labels allow.
std::string choose_type(const SourceData& data, const std::optional<advice::WeightFacts>& weights);

/// Sets the batch and the plan for it.
void set_batch(advice::Draft& draft, std::int64_t images);

/// Chooses sizes, anchors, batch and plan, and counts what there is to train and evaluate on.
/// REQUIRES: `draft` has its file, type, network and machine; `data` has both splits. Throws
/// ConfigError if the detector has no anchors to choose.
void choose(advice::Draft& draft, const SourceData& data);

}  // namespace millrace::cli
