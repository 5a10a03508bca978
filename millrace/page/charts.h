// Charts for a page: lines over steps, bars, heat maps. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/page/svg.h"

namespace millrace::page {

/// One line of a chart. Values that are not finite interrupt it.
struct Series {
  std::string name;
  std::vector<PlotPoint> points;  // x ascending
  int colour = 0;                 // 0 .. 7, then from the start again
  int dash = 0;                   // 0 .. 3: whole, dashed, dotted, both
};

struct LineChart {
  std::string title, x_name, y_name;
  std::vector<Series> series;
  bool from_zero = true;         // the linear axis begins at 0 unless values are below
  bool logarithmic_too = false;  // with a switch to a logarithmic axis, where values are above 0
  double factor = 1;             // of the values that are shown: 100 for shares in per cent
};

/// A figure with its legend. The x axis begins at 0. A long series is drawn by the least and the
/// largest value of each of its parts. The values under the pointer, or at the cursor that arrow
/// keys move, stand below it. A sentence where there is nothing to draw.
std::string line_chart(const LineChart& chart);

/// A bar of a chart, its length a value >= 0.
struct Bar {
  std::string name;
  double value = 0;
  std::string text;       // the value in words; empty: "{:g}"
  std::string note;       // after it
  bool is_other = false;  // in grey
};

/// Bars from left to right, one below the other, the longest as long as the field. "" without bars.
std::string bar_chart(std::span<const Bar> bars, std::string_view about);

/// Counts of values between edges, count i from edge i to the next. REQUIRES: one edge more than
/// counts.
std::string histogram(std::span<const double> edges, std::span<const std::int64_t> counts,
                      std::string_view x_name, std::string_view about);

/// A square of counts with named rows and columns, coloured by the share of its row; the diagonal
/// in the colour of what is right. `counts` is row-major.
std::string heat_map(std::span<const std::string> names, std::span<const std::int64_t> counts,
                     std::string_view about);

}  // namespace millrace::page
