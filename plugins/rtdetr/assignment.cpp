#include "assignment.h"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace millrace::rtdetr {
namespace {

constexpr std::int64_t kNone = -1;

/// Solves the assignment problem. Requires rows <= columns.
class Augmenting {
 public:
  Augmenting(std::span<const double> costs, std::int64_t rows, std::int64_t columns)
      : costs_(costs),
        rows_(static_cast<std::size_t>(rows)),
        columns_(static_cast<std::size_t>(columns)),
        row_price_(rows_),
        column_price_(columns_),
        column_of_(rows_, kNone),
        row_of_(columns_, kNone) {
    for (std::size_t row = 0; row < rows_; ++row) augment(row);
  }

  const std::vector<std::int64_t>& columns() const { return column_of_; }

 private:
  /// Finds the shortest path from a free row to a free column along which rows change their columns
  /// (Dijkstra's algorithm on reduced costs), then reassigns the rows along it.
  void augment(std::size_t first) {
    std::vector<double> distance(columns_, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> from(columns_, first);
    std::vector<bool> is_done(columns_);
    std::vector<std::size_t> seen_rows{first};
    double reached = 0;
    auto row = first;
    std::size_t column = 0;
    while (true) {
      double least = std::numeric_limits<double>::infinity();
      std::size_t next = columns_;
      for (std::size_t c = 0; c < columns_; ++c) {
        if (is_done[c]) continue;
        const double through =
            reached + costs_[row * columns_ + c] - row_price_[row] - column_price_[c];
        if (through < distance[c]) {
          distance[c] = through;
          from[c] = row;
        }
        // If distances are equal, a free column has priority because it ends the search; otherwise
        // the first one is used.
        if (distance[c] < least ||
            (distance[c] == least && row_of_[c] == kNone && row_of_[next] != kNone)) {
          least = distance[c];
          next = c;
        }
      }
      reached = least;
      column = next;
      is_done[column] = true;
      if (row_of_[column] == kNone) break;
      row = static_cast<std::size_t>(row_of_[column]);
      seen_rows.push_back(row);
    }
    for (const auto seen : seen_rows)
      row_price_[seen] +=
          seen == first ? reached : reached - distance[static_cast<std::size_t>(column_of_[seen])];
    for (std::size_t c = 0; c < columns_; ++c)
      if (is_done[c]) column_price_[c] -= reached - distance[c];
    while (true) {
      row = from[column];
      row_of_[column] = static_cast<std::int64_t>(row);
      const auto before = column_of_[row];
      column_of_[row] = static_cast<std::int64_t>(column);
      if (row == first) break;
      column = static_cast<std::size_t>(before);
    }
  }

  std::span<const double> costs_;
  std::size_t rows_, columns_;
  std::vector<double> row_price_, column_price_;
  std::vector<std::int64_t> column_of_, row_of_;
};

}  // namespace

std::vector<std::int64_t> assign(std::span<const double> costs, std::int64_t rows,
                                 std::int64_t columns) {
  if (std::ssize(costs) != rows * columns)
    throw std::invalid_argument("assign: number of costs is not rows * columns");
  for (const double cost : costs)
    if (!std::isfinite(cost)) throw std::invalid_argument("assign: costs must be finite");
  if (rows <= columns) return Augmenting(costs, rows, columns).columns();
  std::vector<double> turned(costs.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      turned[static_cast<std::size_t>(column * rows + row)] =
          costs[static_cast<std::size_t>(row * columns + column)];
  std::vector<std::int64_t> result(static_cast<std::size_t>(rows), kNone);
  const auto found = Augmenting(turned, columns, rows).columns();
  for (std::size_t column = 0; column < found.size(); ++column)
    result[static_cast<std::size_t>(found[column])] = static_cast<std::int64_t>(column);
  return result;
}

}  // namespace millrace::rtdetr
