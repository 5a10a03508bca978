// Sizes of anchors, level by level, as our options say them.
#pragma once

#include <vector>

#include "millrace/migration/translation/translation.h"

namespace millrace {

/// Sets model.anchors.sizes from the sizes that each level of the pyramid has, and with `octaves`
/// model.anchors.scales_per_octave: n sizes must be size x 2^(i/n). Throws ConfigError naming
/// `from`.
void put_anchor_sizes(Translation& translation, const std::vector<std::vector<double>>& levels,
                      const Found& from, const std::string& how = "");

}  // namespace millrace
