// Tables within [data] that recipes of several code bases lead to.
#pragma once

#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/migration/translation/translation.h"

namespace millrace {

/// Sets [[data.sources]] to images that are repeated by the frequency of their classes (Gupta et
/// al., LVIS, 2019), because of `from`.
void put_repeat_factor(Translation& translation, const Found& threshold, const Found& from);

/// Adds a table of [[data.stages]] that has its type only.
Config& add_stage(Config::Array& stages, const std::string& type, const Origin& origin);

/// Sets the size of a stage random_crop. `sides`: as theirs have them, (height, width) but for the
/// range of absolute_range. REQUIRES: there are two.
void set_crop_size(Config& stage, const std::string& crop_type, std::vector<double> sides,
                   const Origin& origin);

}  // namespace millrace
