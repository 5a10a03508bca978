// The assignment problem: which pairs cost least in all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rtdetr {

/// Gives every row of `costs` (rows, columns), row-major and finite, a column of its own so that
/// the sum of their costs is least (exact; among equal ones, paths are tried by index). With more
/// rows than columns, every column gets a row and the other rows -1. Returns the rows' columns.
///
/// Shortest augmenting paths with dual prices (Jonker and Volgenant 1987; Crouse 2016): O(r r c)
/// steps, where r is the smaller side and c the larger. Throws std::invalid_argument if `costs` are
/// not so many, or not finite.
std::vector<std::int64_t> assign(std::span<const double> costs, std::int64_t rows,
                                 std::int64_t columns);

}  // namespace rtdetr
