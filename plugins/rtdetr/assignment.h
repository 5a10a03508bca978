// The linear assignment problem: the pairs of rows and columns with the least total cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::rtdetr {

/// Assigns a distinct column to every row of `costs` (rows, columns), row-major and finite, with
/// the least total cost. The solution is exact; among equal paths, lower indices come first. With
/// more rows than columns, every column gets a row and the remaining rows get -1. Returns the
/// column of each row.
///
/// Uses shortest augmenting paths with dual prices (Jonker and Volgenant 1987; Crouse 2016) in O(r
/// r c) steps, where r is the smaller side and c the larger. Throws std::invalid_argument if
/// `costs` does not have rows * columns values or a value is not finite.
std::vector<std::int64_t> assign(std::span<const double> costs, std::int64_t rows,
                                 std::int64_t columns);

}  // namespace millrace::rtdetr
