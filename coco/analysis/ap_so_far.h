// AP of the images evaluated so far, with a confidence interval.
#pragma once

#include <cstddef>

#include "millrace/coco/analysis/bootstrap.h"

namespace millrace::coco {

/// Returns AP over all thresholds of the evaluator's images with its basic 95 % bootstrap interval
/// from `draws` resamples, computed on all threads of the caller's arena. Categories without
/// objects so far do not count. The value is -1 and the interval NaN if there are no objects yet.
Interval ap_so_far(const Evaluator& evaluator, std::size_t draws);

/// Returns "0.412 (0.394 .. 0.430)", or "-" if there are no objects.
std::string ap_text(const Interval& ap);

}  // namespace millrace::coco
