// Subsets of a data set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// Returns the images at these positions with their annotations, with unchanged ids. `categories`
/// maps the id of each category to keep to the id that its objects get. That id must itself be kept
/// (mapped to itself). Objects of other categories are left out; a category mapped to another one
/// is merged into it.
std::shared_ptr<const Dataset> subset(const Dataset& data, std::span<const std::size_t> images,
                                      const std::map<std::int64_t, std::int64_t>& categories);

}  // namespace millrace::coco
