// AP of the images that an evaluation has seen so far, and how far it may still move.
#pragma once

#include <cstddef>

#include "millrace/coco/analysis/bootstrap.h"

namespace millrace::coco {

/// AP over all thresholds of the evaluator's images and its basic 95 % interval from `draws` draws
/// of them, by all threads of the caller's arena. Classes without an object so far do not count. -1
/// where there is nothing to find yet, and the interval is then NaN.
Interval ap_so_far(const Evaluator& evaluator, std::size_t draws);

/// "0.412 (0.394 .. 0.430)", "-" where there is nothing to find.
std::string ap_text(const Interval& ap);

}  // namespace millrace::coco
