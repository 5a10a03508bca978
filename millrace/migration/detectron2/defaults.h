// The values that detectron2's keys have where a recipe does not set them.
#pragma once

#include "millrace/migration/files/value.h"

namespace millrace::detectron2 {

/// Where such a value stands.
extern const Place kDefaultPlace;

/// All keys that a model of ours has, with their defaults.
Value default_tree();

}  // namespace millrace::detectron2
