// What a configured detector does with perfect answers, for those who have no detector.
#pragma once

#include <optional>
#include <string>

#include "millrace/base/config.h"
#include "millrace/tools/data/ceilings.h"

namespace millrace::cli {

/// That of the detector `type` with the options `model`, a complete [model] table, over inputs of
/// multiples of `divisor` pixels; without a resize. Nothing for a detector that is not built in.
/// Throws ConfigError.
std::optional<CeilingRule> ceiling_rule(const std::string& type, const Config& model,
                                        std::int64_t divisor);

}  // namespace millrace::cli
