// Drawings as SVG text for a page; colours are the page's style classes. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace::page {

/// Begins a drawing of so many pixels, which shrinks with its column; ends with "</svg>\n". `about`
/// is its alternative text.
std::string begin_svg(double width, double height, std::string_view style, std::string_view about);

/// Appends a rectangle; `title` shows under the pointer.
void rect(std::string& out, double x, double y, double width, double height, std::string_view style,
          std::string_view title = "", double opacity = 1);
/// Appends text whose baseline begins, ends (style "end") or has its middle ("middle") at a point.
void words(std::string& out, double x, double y, std::string_view style, std::string_view text);
/// Appends a straight line.
void stroke(std::string& out, double x1, double y1, double x2, double y2, std::string_view style);

/// The least of ... 1, 2, 5, 10, 20 ... that is not less. REQUIRES: a finite value.
double round_up(double value);

/// A point in the units of the axes.
struct PlotPoint {
  double x = 0, y = 0;
};

/// One axis: its range, how many steps the grid has, and what it is called. A logarithmic one has
/// lines at 1, 2 and 5 times powers of ten, or at the powers alone. REQUIRES: low < high, and 0 <
/// low where it is logarithmic.
struct PlotAxis {
  double low = 0, high = 1;
  int steps = 5;
  std::string name;
  bool logarithmic = false;
};

/// A chart of two axes. What is added later is drawn above.
class Plot {
 public:
  /// Pixels of the whole drawing, which shrinks with its column. `about` is its alternative text.
  /// `attributes` are more of its element, as HTML.
  Plot(int width, int height, const PlotAxis& x, const PlotAxis& y, std::string_view about,
       std::string_view attributes = "");

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

}  // namespace millrace::page
