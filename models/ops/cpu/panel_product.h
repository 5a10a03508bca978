// Products of matrices that lie in panels of 32 columns: the inner loops of Winograd's
// convolutions.
#pragma once

#include <cstdint>

namespace millrace {

/// A matrix (R, C) in panels is (C / kPanel, R, kPanel) in memory.
constexpr std::int64_t kPanel = 32;

/// y = a b of one panel: a (rows, depth) in panels, each `a_panel` floats after the one before;
/// b (depth, kPanel), y (rows, kPanel). depth is a multiple of kPanel. Terms are added in the same
/// order for any number of rows, so a row gets the same bytes beside any others.
void multiply_panel(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t a_panel,
                    const float* b, float* y);

/// y = at b of one panel each, or y + at b: a, b (depth, kPanel), y (kPanel, kPanel).
void multiply_transposed_panel(std::int64_t depth, const float* a, const float* b, float* y,
                               bool add);

/// Whether this processor has the instructions for it; if not, others are faster.
bool multiplies_panels();

}  // namespace millrace
