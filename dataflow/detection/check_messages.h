// What stages may rely on in samples and batches.
#pragma once

#include <cstdint>
#include <limits>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/stage.h"

namespace millrace {

/// For unknown classes.
inline constexpr std::size_t kAnyClasses = std::numeric_limits<std::int32_t>::max();

/// Throws std::invalid_argument naming the image and the fault: pixels that are not 8-bit RGB,
/// members of the objects of different lengths, a box or run-length mask outside the image, a
/// polygon of fewer than three points, a class not in 0 .. classes-1.
void check_sample(const Sample& sample, std::size_t classes = kAnyClasses);

/// The same for a batch, which must hold its images.
void check_batch(const Batch& batch, std::size_t classes = kAnyClasses);

/// The stage with a check of the samples or batches that it gives.
Stage checked(Stage stage, std::size_t classes);

}  // namespace millrace
