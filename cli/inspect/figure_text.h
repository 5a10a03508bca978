// Figures as the sentences on data name them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "millrace/tools/data/object_statistics.h"
#include "millrace/tools/data/percent_text.h"

namespace millrace::cli {

/// The side in pixels below which objects are found badly.
inline constexpr double kTinyPixels = kSizeBounds[0];

/// The share of the values for which `holds`; 0 of none.
double share_if(const std::vector<double>& values, const auto& holds) {
  if (values.empty()) return 0;
  return static_cast<double>(std::ranges::count_if(values, holds)) /
         static_cast<double>(values.size());
}

/// How many times its size each image is seen at.
std::vector<double> image_scales(const SeenData& data);

/// "32", "4.5".
std::string pixel_text(double pixels);

/// "[16, 32.5]", as TOML has it.
std::string list_text(const std::vector<double>& values);

}  // namespace millrace::cli
