// What there is to learn in a source.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/source.h"

namespace millrace {

/// Counts by what the source says of its samples, by all threads; pixels are not looked at.
ObjectCounts count_objects(const Source<Sample>& source);

}  // namespace millrace
