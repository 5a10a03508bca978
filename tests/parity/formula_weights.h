// The weights of the goldens' models, which are a formula instead of a file.
#pragma once

#include <cstdint>

#include "millrace/weights/parameters.h"

namespace millrace::testing {

/// Overwrites every parameter with values drawn by splitmix64 from (name, seed, index), scaled by
/// what the tensor is for: `formula_init` of the goldens' scripts. Names are torchvision's.
void fill_by_formula(const Parameters& parameters, std::uint64_t seed);

}  // namespace millrace::testing
