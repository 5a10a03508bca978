// Inserts stages into a list by `after` or `before`, such as `[[data.stages]] type = "cutout"`,
// `after = "decode"`, so that a configuration need not repeat all other stages.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "millrace/base/config.h"

namespace millrace {

/// Returns the tables in execution order, without `after` and `before`. Tables that have neither
/// form the initial list; without such tables it is `standard`, by type. Each other table, in
/// order, is then inserted directly behind the stage whose type `after` names, or in front of the
/// one that `before` names; several behind one stage keep their order. An inserted stage may be
/// named too. Throws ConfigError with file and line if a name matches no stage or more than one, or
/// if a table has both keys.
std::vector<Config> spliced_stages(std::span<const Config> tables,
                                   std::span<const std::string_view> standard);

}  // namespace millrace
