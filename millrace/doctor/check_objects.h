// The objects of a data set: whether their boxes, shapes and areas can be, and agree with each
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "millrace/coco/data/annotations.h"
#include "millrace/doctor/findings.h"

namespace millrace::coco {

/// Checks each object of these categories, by all threads of the caller's arena; its shape only
/// `with_shapes`. Returns how many images have an object to learn: one that is no crowd, is not
/// ignored and `has_pixels`.
std::size_t check_objects(const Dataset& data, std::span<const std::int64_t> category_ids,
                          bool with_shapes, Findings& findings);

}  // namespace millrace::coco
