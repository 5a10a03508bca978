#include "millrace/page/svg.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <vector>

#include "millrace/page/html.h"

namespace millrace::page {
namespace {

/// How far a value lies along an axis, 0 .. 1.
double share(const PlotAxis& axis, double value) {
  if (!axis.logarithmic) return (value - axis.low) / (axis.high - axis.low);
  return std::log(value / axis.low) / std::log(axis.high / axis.low);
}

/// Where the lines of the grid are.
std::vector<double> ticks(const PlotAxis& axis) {
  std::vector<double> all;
  if (!axis.logarithmic) {
    for (int i = 0; i <= axis.steps; ++i)
      all.push_back(axis.low + (axis.high - axis.low) * i / axis.steps);
    return all;
  }
  const bool wide = axis.high / axis.low > 1000;
  const int first = static_cast<int>(std::floor(std::log10(axis.low)));
  const int last = static_cast<int>(std::ceil(std::log10(axis.high)));
  for (int power = first; power <= last; ++power)
    for (const double factor : {1., 2., 5.}) {
      const double value = factor * std::pow(10, power);
      if (value < axis.low * (1 - 1e-9) || value > axis.high * (1 + 1e-9)) continue;
      if (factor == 1 || !wide) all.push_back(value);
    }
  return all;
}

}  // namespace

std::string begin_svg(double width, double height, std::string_view style, std::string_view about) {
  return fmt::format(
      "<svg class=\"{0}\" style=\"max-width: {1:.0f}px\" viewBox=\"0 0 {1:.0f} {2:.0f}\" "
      "role=\"img\" aria-label=\"{3}\">\n",
      style, width, height, escaped(about));
}

void rect(std::string& out, double x, double y, double width, double height, std::string_view style,
          std::string_view title, double opacity) {
  out +=
      fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"",
                  style, x, y, width, height);
  if (opacity < 1) out += fmt::format(" fill-opacity=\"{:.2f}\"", opacity);
  out += title.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escaped(title));
}

void words(std::string& out, double x, double y, std::string_view style, std::string_view text) {
  out += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", style, x, y,
                     escaped(text));
}

void stroke(std::string& out, double x1, double y1, double x2, double y2, std::string_view style) {
  out +=
      fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                  style, x1, y1, x2, y2);
}

double round_up(double value) {
  if (value <= 0) return 1e-3;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  for (const double factor : {1., 2., 5., 10., 20., 50., 100.})
    if (unit * factor >= value * (1 - 1e-12)) return unit * factor;
  return unit * 200;
}

Plot::Plot(int width, int height, const PlotAxis& x, const PlotAxis& y, std::string_view about,
           std::string_view attributes)
    : x_(x), y_(y), left_(56), top_(12), width_(width - 68), height_(height - 56) {
  auto out = std::back_inserter(text_);
  fmt::format_to(out,
                 "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{}{}>\n",
                 width, height, escaped(about), attributes.empty() ? "" : " ", attributes);
  const auto tick = [&](PlotPoint from, PlotPoint to, PlotPoint text, const char* anchor,
                        double value) {
    if (std::abs(value) >= 1000 && std::abs(value) < 1e7)
      fmt::format_to(out,
                     "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
                     "y2=\"{:.1f}\"/><text class=\"tick {}\" x=\"{:.1f}\" y=\"{:.1f}\">{:.0f}"
                     "</text>\n",
                     from.x, from.y, to.x, to.y, anchor, text.x, text.y, value);
    else
      fmt::format_to(
          out,
          "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
          "<text class=\"tick {}\" x=\"{:.1f}\" y=\"{:.1f}\">{:.3g}</text>\n",
          from.x, from.y, to.x, to.y, anchor, text.x, text.y, value);
  };
  const double right = left_ + width_, bottom = top_ + height_;
  for (const double value : ticks(x_)) {
    const double at = left_ + width_ * share(x_, value);
    tick({at, top_}, {at, bottom}, {at, bottom + 16}, "middle", value);
  }
  for (const double value : ticks(y_)) {
    const double at = top_ + height_ * (1 - share(y_, value));
    tick({left_, at}, {right, at}, {left_ - 6, at + 4}, "end", value);
  }
  fmt::format_to(
      out,
      "<text class=\"name middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n"
      "<text class=\"name middle\" transform=\"translate(12 {:.1f}) rotate(-90)\">{}</text>\n",
      left_ + width_ / 2, bottom + 36, escaped(x_.name), top_ + height_ / 2, escaped(y_.name));
}

PlotPoint Plot::place(PlotPoint at) const {
  return {left_ + width_ * share(x_, at.x), top_ + height_ * (1 - share(y_, at.y))};
}

void Plot::line(std::span<const PlotPoint> points, std::string_view style, std::string_view title,
                double opacity) {
  if (points.size() < 2) return;
  auto out = std::back_inserter(text_);
  fmt::format_to(out, "<polyline class=\"{}\" stroke-opacity=\"{:.2f}\" points=\"", style, opacity);
  for (const PlotPoint& point : points) {
    const auto [x, y] = place(point);
    fmt::format_to(out, "{:.1f},{:.1f} ", x, y);
  }
  fmt::format_to(out, "\"><title>{}</title></polyline>\n", escaped(title));
}

void Plot::dot(PlotPoint at, std::string_view style, std::string_view title) {
  const auto [x, y] = place(at);
  fmt::format_to(
      std::back_inserter(text_),
      "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title></circle>\n",
      style, x, y, escaped(title));
}

}  // namespace millrace::page
