// A part of a data set.
#pragma once

#include <functional>
#include <memory>

#include "millrace/coco/data/annotations.h"

namespace millrace::formats {

/// The images for which `keep` is true, with their objects, and all categories; ids stay.
std::shared_ptr<const coco::Dataset> subset(const coco::Dataset& data,
                                            const std::function<bool(const coco::Image&)>& keep);

}  // namespace millrace::formats
