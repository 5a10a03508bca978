// Which keys of a configuration decide what a training computes, as its options say (Decides).
#pragma once

#include <string>

#include "millrace/base/config.h"

namespace millrace {

/// False for keys that decide where data is, how fast it comes, what is reported and where it is
/// written. `key`: dotted, as in `leaves`; `config`: a complete one that has it. True for what
/// nobody here describes, such as options of a plug-in that is not loaded.
bool decides_results(const std::string& key, const Config& config);

}  // namespace millrace
