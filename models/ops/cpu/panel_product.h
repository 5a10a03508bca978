// Products of matrices stored in panels of 32 columns: the inner loops of Winograd's convolutions.
#pragma once

#include <cstdint>

namespace millrace {

/// Columns of a panel. A matrix (R, C) in panels is (C / kPanel, R, kPanel) in memory.
constexpr std::int64_t kPanel = 32;

/// Computes y = a b of one panel: a (rows, depth) in panels that are `a_panel` floats apart, b
/// (depth, kPanel), y (rows, kPanel). depth is a multiple of kPanel. Terms are added in the same
/// order for any number of rows, so a row's bytes do not depend on the other rows.
void multiply_panel(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t a_panel,
                    const float* b, float* y);

/// Computes y = at b of one panel each, or y + at b: a, b (depth, kPanel), y (kPanel, kPanel).
void multiply_transposed_panel(std::int64_t depth, const float* a, const float* b, float* y,
                               bool add);

/// Returns true if the processor has vector instructions for these products; if not, other products
/// are faster.
bool multiplies_panels();

}  // namespace millrace
