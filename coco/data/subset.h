// A part of a data set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// The images at these positions with their annotations, all with the ids that they have.
/// `categories`: the id of each category that stays, and the one that its objects get, which must
/// stay too: objects of others are left out, and a category with another's id joins that.
std::shared_ptr<const Dataset> subset(const Dataset& data, std::span<const std::size_t> images,
                                      const std::map<std::int64_t, std::int64_t>& categories);

}  // namespace millrace::coco
