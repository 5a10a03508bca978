// Stages that `after` or `before` puts into a list, `[[data.stages]] type = "cutout"`, `after =
// "decode"`, instead of a list that repeats all other stages.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "millrace/base/config.h"

namespace millrace {

/// The list in the order in which stages work, its tables without `after` and `before`. The tables
/// that have neither are the list to begin with, in their order; without any, it is `standard`, by
/// type. Then each of the others, in their order, is put directly behind the stage of the type that
/// `after` names, or in front of the one that `before` names; several behind one stage keep their
/// order. A stage that has been put in may be named, too. Throws ConfigError with file and line for
/// a name that no stage or more than one has, and for a table with both.
std::vector<Config> spliced_stages(std::span<const Config> tables,
                                   std::span<const std::string_view> standard);

}  // namespace millrace
