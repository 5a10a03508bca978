// Drawings as SVG text for a page; colours are the page's style classes. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace::coco {

/// Text as it may stand in HTML and SVG, between tags and in quoted attributes.
std::string escaped(std::string_view text);

/// A point in the units of the axes.
struct PlotPoint {
  double x = 0, y = 0;
};

/// One axis: its range, how many steps the grid has, and what it is called.
struct PlotAxis {
  double low = 0, high = 1;
  int steps = 5;
  std::string name;
};

/// A chart of two axes. What is added later is drawn above.
class Plot {
 public:
  /// Pixels of the whole drawing, which shrinks with its column. `about` is its alternative text.
  Plot(int width, int height, const PlotAxis& x, const PlotAxis& y, std::string_view about);

  /// A polyline whose `title` shows under the pointer. Nothing for fewer than two points.
  void line(std::span<const PlotPoint> points, std::string_view style, std::string_view title,
            double opacity = 1);
  void dot(PlotPoint at, std::string_view style, std::string_view title);

  std::string svg() const { return text_ + "</svg>\n"; }

 private:
  PlotPoint place(PlotPoint at) const;  // in pixels

  PlotAxis x_, y_;
  double left_, top_, width_, height_;  // the field between the axes
  std::string text_;
};

}  // namespace millrace::coco
