// What data checks need of a configured detector, without making one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/tools/data/anchor_coverage.h"
#include "millrace/tools/data/ceilings.h"

namespace millrace::cli {

/// The anchors of the detector `type` with the options `model`, a complete [model] table, over
/// inputs of multiples of `divisor` pixels, with these sizes and ratios instead of the configured
/// ones unless they are empty. nullopt for a detector that is not built in or has no anchors.
/// Throws ConfigError.
std::optional<AnchorRule> anchor_rule(const std::string& type, const Config& model,
                                      std::int64_t divisor, const std::vector<double>& sizes = {},
                                      const std::vector<double>& ratios = {});

/// What it does with perfect answers, without a resize. nullopt for a detector that is not built
/// in. Throws ConfigError.
std::optional<CeilingRule> ceiling_rule(const std::string& type, const Config& model,
                                        std::int64_t divisor);

/// The list of numbers at a path of a [model] table, "anchors.sizes"; empty if it has none.
std::vector<double> numbers(const Config& model, std::string_view path);

}  // namespace millrace::cli
