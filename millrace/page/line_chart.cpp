#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "millrace/page/charts.h"
#include "millrace/page/html.h"

namespace millrace::page {
namespace {

constexpr std::size_t kMostPoints = 400;  // of a drawn line
constexpr int kWidth = 480, kHeight = 290;

/// The least and the largest value of each part of a long series, in its order; all of a short one,
/// and all that is not finite.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, double factor) {
  std::vector<PlotPoint> all;
  const std::size_t parts = points.size() <= kMostPoints ? points.size() : kMostPoints / 2;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * points.size() / parts,
                      end = (part + 1) * points.size() / parts;
    std::size_t low = begin, high = begin;
    std::optional<std::size_t> broken;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(points[i].y)) {
        broken = i;
        continue;
      }
      if (!(points[low].y <= points[i].y)) low = i;  // also where that one is not finite
      if (!(points[high].y >= points[i].y)) high = i;
    }
    std::vector<std::size_t> kept{low, high};
    if (broken) kept.push_back(*broken);
    std::ranges::sort(kept);
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const std::size_t i : kept) all.push_back({points[i].x, points[i].y * factor});
  }
  return all;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) { low = std::min(low, value), high = std::max(high, value); }
  bool is_empty() const { return !(low <= high); }
};

/// A linear axis around a range, with lines at round values.
PlotAxis rounded_axis(Range range, std::string name) {
  if (range.low == range.high) range.high = range.low + (range.low == 0 ? 1 : std::abs(range.low));
  const double step = round_up((range.high - range.low) / 5);
  const double first = std::floor(range.low / step + 1e-9);
  const double last = std::max(std::ceil(range.high / step - 1e-9), first + 1);
  return {first * step, last * step, static_cast<int>(last - first), std::move(name)};
}

/// Runs of points that an axis can show, as polylines; a lone point as a dot.
void draw(Plot& plot, const Series& series, const std::vector<PlotPoint>& points,
          bool logarithmic) {
  const std::string style = fmt::format("curve c{} d{}", series.colour % 8, series.dash % 4);
  std::vector<PlotPoint> run;
  const auto flush = [&] {
    if (run.size() == 1) plot.dot(run[0], fmt::format("c{}", series.colour % 8), series.name);
    plot.line(run, style, series.name);
    run.clear();
  };
  for (const PlotPoint& point : points) {
    if (std::isfinite(point.y) && (!logarithmic || point.y > 0))
      run.push_back(point);
    else
      flush();
  }
  flush();
}

/// What the script needs of an axis: its range, its place in pixels, whether it is logarithmic.
std::string axis_data(const PlotAxis& x, const PlotAxis& y) {
  return fmt::format("tabindex=\"0\" data-x=\"{:g} {:g}\" data-y=\"{:g} {:g} {:d}\"", x.low, x.high,
                     y.low, y.high, y.logarithmic);
}

/// The series as JSON in an attribute.
std::string series_data(const LineChart& chart, const std::vector<std::vector<PlotPoint>>& lines) {
  std::string out = "[";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += fmt::format("{}{{\"name\":{},\"points\":[", i == 0 ? "" : ",",
                       json_string(chart.series[i].name));
    for (std::size_t k = 0; k < lines[i].size(); ++k) {
      const auto [x, y] = lines[i][k];
      out += fmt::format("{}{:.7g},", k == 0 ? "" : ",", x);
      out += std::isfinite(y) ? fmt::format("{:.4g}", y) : "null";
    }
    out += "]}";
  }
  return escaped(out + "]");
}

std::string legend(const LineChart& chart) {
  std::string out = "<ul class=\"legend\">";
  for (const Series& one : chart.series)
    out += fmt::format(
        "<li><svg viewBox=\"0 0 26 8\" aria-hidden=\"true\"><line class=\"c{} d{}\" x1=\"0\" "
        "y1=\"4\" x2=\"26\" y2=\"4\"/></svg>{}</li>",
        one.colour % 8, one.dash % 4, escaped(one.name));
  return out + "</ul>\n";
}

}  // namespace

std::string line_chart(const LineChart& chart) {
  std::vector<std::vector<PlotPoint>> lines;
  Range x, y, above_zero;
  for (const Series& series : chart.series) {
    lines.push_back(thinned(series.points, chart.factor));
    for (const PlotPoint& point : lines.back()) {
      if (!std::isfinite(point.y)) continue;
      x.add(point.x), y.add(point.y);
      if (point.y > 0) above_zero.add(point.y);
    }
  }
  const std::string title =
      fmt::format("<figcaption class=\"title\">{}</figcaption>\n", escaped(chart.title));
  if (y.is_empty())
    return fmt::format("<figure>{}<p class=\"soft\">No values.</p></figure>\n", title);
  x.add(0);
  if (chart.from_zero) y.add(0);
  const PlotAxis across = rounded_axis(x, chart.x_name);
  const auto drawn = [&](const PlotAxis& up) {
    Plot plot(kWidth, kHeight, across, up, chart.title, axis_data(across, up));
    for (std::size_t i = 0; i < lines.size(); ++i)
      draw(plot, chart.series[i], lines[i], up.logarithmic);
    return plot.svg();
  };
  std::string out = fmt::format("<figure class=\"lines\" data-series=\"{}\" data-x-name=\"{}\">\n",
                                series_data(chart, lines), escaped(chart.x_name));
  out += title;
  const bool both = chart.logarithmic_too && !above_zero.is_empty();
  if (both) out += "<label class=\"soft scale\"><input type=\"checkbox\"> logarithmic</label>\n";
  out += fmt::format("<div class=\"linear\">{}</div>\n", drawn(rounded_axis(y, chart.y_name)));
  if (both) {
    const double low = std::pow(10, std::floor(std::log10(above_zero.low) * 3) / 3);
    PlotAxis up{low, std::max(above_zero.high * 1.05, low * 2), 0, chart.y_name, true};
    out += fmt::format("<div class=\"log\">{}</div>\n", drawn(up));
  }
  return out + legend(chart) + "<output aria-live=\"polite\"></output>\n</figure>\n";
}

}  // namespace millrace::page
