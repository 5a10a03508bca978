// Checks of the properties of samples and batches that stages rely on.
#pragma once

#include <cstdint>
#include <limits>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/stage.h"

namespace millrace {

/// Number of classes if it is unknown.
inline constexpr std::size_t kAnyClasses = std::numeric_limits<std::int32_t>::max();

/// Throws std::invalid_argument with the image and the fault: pixels that are not 8-bit RGB,
/// members of the objects with different lengths, a box or run-length mask outside the image, a
/// polygon of fewer than three points, a class not in 0 .. classes-1.
void check_sample(const Sample& sample, std::size_t classes = kAnyClasses);

/// Checks a batch in the same way, and that it contains its images.
void check_batch(const Batch& batch, std::size_t classes = kAnyClasses);

/// Adds to the stage a check of the samples or batches that it yields.
Stage checked(Stage stage, std::size_t classes);

}  // namespace millrace
