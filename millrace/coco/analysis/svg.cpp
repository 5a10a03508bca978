#include "millrace/coco/analysis/svg.h"

#include <fmt/format.h>

#include <iterator>

namespace millrace::coco {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text)
    result += c == '&'   ? "&amp;"
              : c == '<' ? "&lt;"
              : c == '>' ? "&gt;"
              : c == '"' ? "&quot;"
                         : std::string(1, c);
  return result;
}

Plot::Plot(int width, int height, const PlotAxis& x, const PlotAxis& y, std::string_view about)
    : x_(x), y_(y), left_(44), top_(12), width_(width - 56), height_(height - 56) {
  auto out = std::back_inserter(text_);
  fmt::format_to(out, "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                 width, height, escaped(about));
  const auto tick = [&](PlotPoint from, PlotPoint to, PlotPoint text, const char* anchor,
                        double value) {
    fmt::format_to(out,
                   "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
                   "<text class=\"tick {}\" x=\"{:.1f}\" y=\"{:.1f}\">{:.3g}</text>\n",
                   from.x, from.y, to.x, to.y, anchor, text.x, text.y, value);
  };
  const double right = left_ + width_, bottom = top_ + height_;
  for (int i = 0; i <= x_.steps; ++i) {
    const double value = x_.low + (x_.high - x_.low) * i / x_.steps, at = place({value, 0}).x;
    tick({at, top_}, {at, bottom}, {at, bottom + 16}, "middle", value);
  }
  for (int i = 0; i <= y_.steps; ++i) {
    const double value = y_.low + (y_.high - y_.low) * i / y_.steps, at = place({0, value}).y;
    tick({left_, at}, {right, at}, {left_ - 6, at + 4}, "end", value);
  }
  fmt::format_to(
      out,
      "<text class=\"name middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n"
      "<text class=\"name middle\" transform=\"translate(12 {:.1f}) rotate(-90)\">{}</text>\n",
      left_ + width_ / 2, bottom + 36, escaped(x_.name), top_ + height_ / 2, escaped(y_.name));
}

PlotPoint Plot::place(PlotPoint at) const {
  return {left_ + width_ * (at.x - x_.low) / (x_.high - x_.low),
          top_ + height_ * (1 - (at.y - y_.low) / (y_.high - y_.low))};
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

}  // namespace millrace::coco
