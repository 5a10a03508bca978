// Small readers of MMDetection's keys.
#pragma once

#include <string>
#include <vector>

#include "millrace/migration/translation/translation.h"

namespace millrace::mmdetection {

/// A string that must be there and be one of these, else the model is none of ours: ConfigError.
std::string must(Translation& t, const std::string& path, const std::vector<std::string>& possible);

double real_or(Translation& t, const std::string& path, double otherwise);
bool flag_or(Translation& t, const std::string& path, bool otherwise);
std::string text_or(Translation& t, const std::string& path, const std::string& otherwise);

/// Our name of the norm of a part, "none" without norm_cfg. Throws ConfigError for another norm
/// than ours.
std::string norm_of(Translation& t, const std::string& part);

/// mean, std and order of channels at `path`: of the preprocessor (3.x) or of `Normalize` (2.x).
/// `order`: the key of the latter.
void read_pixels(Translation& t, const std::string& path, const std::string& order);

}  // namespace millrace::mmdetection
