// MMDetection's pipelines: lists of what becomes of an image.
#pragma once

#include <string>

#include "millrace/migration/translation/translation.h"

namespace millrace::mmdetection {

/// Translates the pipelines of training and of evaluation into the sizes and flips of [data], or
/// into [[data.stages]] where these do not say it. Returns the path of `Normalize` (2.x), or "".
std::string read_pipelines(Translation& translation, const std::string& train,
                           const std::string& test);

}  // namespace millrace::mmdetection
