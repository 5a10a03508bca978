// What there is to learn in a source.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/source.h"

namespace millrace {

/// Crowd regions are not counted.
struct ObjectCounts {
  std::int64_t samples = 0;
  std::int64_t objects = 0;
  std::int64_t without_shape = 0;   // of the objects
  std::string first_without_shape;  // path of the first sample that has such an object
};

/// Counts by what the source says of its samples, by all threads; pixels are not looked at.
ObjectCounts count_objects(const Source<Sample>& source);

}  // namespace millrace
