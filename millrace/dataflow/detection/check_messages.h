// What stages rely on in the samples and batches that they are given, whoever made them.
#pragma once

#include <cstdint>
#include <limits>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/stage.h"

namespace millrace {

/// For `classes` that nobody knows.
inline constexpr std::size_t kAnyClasses = std::numeric_limits<std::int32_t>::max();

/// Throws std::invalid_argument naming the image and what is wrong with the sample: pixels that are
/// not 8-bit RGB, members of the objects of different lengths, a box or run-length mask that does
/// not lie in the image, a polygon without three points, a class that is none of 0 .. classes-1.
/// Costs nothing beside a stage's work.
void check_sample(const Sample& sample, std::size_t classes = kAnyClasses);

/// The same of a batch, whose images have to lie in it.
void check_batch(const Batch& batch, std::size_t classes = kAnyClasses);

/// The stage, whose samples or batches are checked, so that the message of a fault names it.
Stage checked(Stage stage, std::size_t classes);

}  // namespace millrace
