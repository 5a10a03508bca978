// Columns of tables of boxes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "millrace/tools/formats/files/texts.h"

namespace millrace::formats {

/// Indices of the columns of a table of boxes; nullopt if it does not have the column.
struct CsvColumns {
  bool has_header = true;
  std::size_t image = 0;
  std::optional<std::size_t> category, group;  // group: nonzero for a box around several objects
  std::optional<std::size_t> x1, y1, x2, y2;   // corners
  std::optional<std::size_t> width, height;    // of the box, instead of x2 and y2
  std::optional<std::size_t> box;              // "[x, y, width, height]", instead of the columns
                                               // above
  std::optional<std::size_t> image_width, image_height;
};

/// Returns the columns of a table with this first row; nullopt if it is not a table of boxes.
/// Compares only letters and digits of names, without case.
std::optional<CsvColumns> csv_columns(const std::vector<std::string>& first_row);

/// A box, or an image without boxes if `empty`.
struct CsvBox {
  bool empty = false, crowd = false;
  std::string image, category;
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  std::optional<double> image_width, image_height;
};

/// Reads a row into `box`. Returns why it is not a box; empty if it is one.
std::string read_csv_box(const CsvRow& row, const CsvColumns& columns, CsvBox& box);

}  // namespace millrace::formats
