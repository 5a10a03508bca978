// Properties of a configured detector that data checks need, found without creating the detector.
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

/// Returns the anchors of the detector `type`. `model`: its complete [model] table. `divisor`:
/// input sizes are multiples of it, in pixels. Non-empty `sizes` and `ratios` replace the
/// configured ones. Returns nullopt if the detector is not built in or has no anchors. Throws
/// ConfigError.
std::optional<AnchorRule> anchor_rule(const std::string& type, const Config& model,
                                      std::int64_t divisor, const std::vector<double>& sizes = {},
                                      const std::vector<double>& ratios = {});

/// Returns how the detector would process perfect predictions, without any resizing. Returns
/// nullopt if the detector is not built in. Throws ConfigError.
std::optional<CeilingRule> ceiling_rule(const std::string& type, const Config& model,
                                        std::int64_t divisor);

/// Returns the list of numbers at a path of a [model] table, such as "anchors.sizes"; empty if
/// there is no list.
std::vector<double> numbers(const Config& model, std::string_view path);

}  // namespace millrace::cli
