// The anchors of a configured detector, for those who have no detector.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/doctor/anchor_coverage.h"

namespace millrace::cli {

/// The anchors of the detector `type` with the options `model`, a complete [model] table, over
/// inputs of multiples of `divisor` pixels. With `sizes`, with these instead of anchors.sizes.
/// Nothing for a detector that is not built in or has no anchors. Throws ConfigError.
std::optional<AnchorRule> anchor_rule(const std::string& type, const Config& model,
                                      std::int64_t divisor, const std::vector<double>& sizes = {});

/// anchors.sizes of a [model] table; empty: it has none.
std::vector<double> anchor_sizes(const Config& model);

}  // namespace millrace::cli
