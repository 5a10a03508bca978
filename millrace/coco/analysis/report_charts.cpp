#include "millrace/coco/analysis/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/text.h"
#include "millrace/coco/evaluation/summary.h"
#include "millrace/page/charts.h"
#include "millrace/page/html.h"

namespace millrace::coco {

using page::begin_svg;
using page::Plot;
using page::PlotAxis;
using page::PlotPoint;
using page::rect;
using page::round_up;
using page::stroke;
using page::words;
std::string error_chart(const ErrorCosts& errors) {
  constexpr double kLabel = 120, kBar = 380, kRow = 30;
  struct Row {
    std::string_view name;
    double cost;
    std::string note;
    const char* style;
  };
  std::vector<Row> rows;
  for (std::size_t e = 0; e < kErrorKinds; ++e) {
    const bool missed = static_cast<ErrorKind>(e) == ErrorKind::missed;
    rows.push_back({kErrorNames[e], errors.cost[e],
                    counted(errors.count[e], missed ? "object" : "detection"), "bar"});
  }
  rows.push_back({"all wrong", errors.false_positives, "", "bar other"});
  rows.push_back({"all unfound", errors.false_negatives, "", "bar other"});
  double most = .01;
  for (const Row& row : rows) most = std::max(most, row.cost);

  std::string out = begin_svg(kLabel + kBar + 200, kRow * (static_cast<double>(rows.size()) + .5),
                              "chart", "AP50 that each kind of error costs");
  double y = 0;
  for (const Row& row : rows) {
    if (row.style != rows[0].style && y < kRow * kErrorKinds + 1) y += kRow / 2;
    const double width = std::max(1., kBar * row.cost / most);
    words(out, kLabel - 10, y + 19, "label end", row.name);
    rect(out, kLabel, y + 5, width, kRow - 10, row.style);
    words(out, kLabel + width + 8, y + 19, "value", fmt::format("{:.1f}", 100 * row.cost));
    words(out, kLabel + width + 50, y + 19, "note", row.note);
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string precision_chart(const Analysis& analysis) {
  Plot plot(560, 380, {0, 1, 5, "recall"}, {0, 1, 5, "precision"},
            "Precision over recall for IoU .50 to .95");
  for (std::size_t t = 0; t < kThresholds; ++t) {
    std::vector<PlotPoint> points;
    for (std::size_t r = 0; r < kRecalls; ++r) {
      const double precision = analysis.precision[t * kRecalls + r];
      if (precision >= 0) points.push_back({kRecallThresholds[r], precision});
    }
    const double share = static_cast<double>(t) / (kThresholds - 1);
    plot.line(points, "curve", fmt::format("IoU {:.2f}", kIouThresholds[t]), 1 - .75 * share);
  }
  return plot.svg();
}

std::string score_chart(const OperatingPoints& points) {
  const double last = points.curve.empty() ? 0 : points.curve.back().score;
  const double first = points.curve.empty() ? 1 : points.curve.front().score;
  // Scores are mostly probabilities; if not, the axis is as long as they reach
  PlotAxis axis{std::min(0., last), first <= 1 ? 1 : round_up(first), 5,
                "score from which on detections count"};
  Plot plot(560, 380, axis, {0, 1, 5, "at IoU .5, all classes"},
            "Precision, recall and F1 over score");
  const auto draw = [&](const char* style, const char* title, double OperatingPoint::*value) {
    std::vector<PlotPoint> line;
    for (const auto& one : points.curve) line.push_back({one.score, one.*value});
    plot.line(line, style, title);
  };
  draw("curve precision", "precision", &OperatingPoint::precision);
  draw("curve recall", "recall", &OperatingPoint::recall);
  draw("curve f1", "F1", &OperatingPoint::f1);
  plot.dot({points.best.score, points.best.f1}, "best",
           fmt::format("best F1 {:.3f} at score {:.3f}", points.best.f1, points.best.score));
  return plot.svg();
}

std::string small_curve(const CategoryReport& category) {
  std::string out =
      "<svg class=\"small\" viewBox=\"0 0 50 18\" aria-hidden=\"true\"><polyline points=\"";
  for (std::size_t r = 0; r < kRecalls; r += 4)
    out += fmt::format("{:g},{:.1f} ", static_cast<double>(r) / 2,
                       17 - 16 * std::max(0., category.precision[r]));
  return out + "\"/></svg>";
}

std::string ap_bar(const CategoryReport& category, const Interval* interval) {
  std::string out = "<svg class=\"ap\" viewBox=\"0 0 100 12\" aria-hidden=\"true\">";
  rect(out, 0, 2, 100, 8, "track");
  rect(out, 0, 2, 100 * std::max(0., category.stats[0]), 8, "bar");
  if (interval && !std::isnan(interval->low))
    stroke(out, 100 * interval->low, 6, 100 * interval->high, 6, "whisker");
  return out + "</svg>";
}

std::string confusion_chart(const Analysis& analysis) {
  std::vector<std::string> names;
  for (const CategoryReport& one : analysis.categories) names.push_back(one.name);
  names.emplace_back("background");
  return page::heat_map(names, analysis.confusion.counts,
                        "Confusion matrix: rows are what is there, columns what was found");
}

std::string difference_chart(const Analysis& analysis) {
  constexpr double kLabel = 150, kField = 430, kRow = 18;
  const Spread& difference = analysis.versus->difference;
  std::vector<std::pair<std::string, Interval>> rows;
  for (const std::size_t k : most_different(*analysis.versus, kDrawnDifferences))
    rows.emplace_back(analysis.categories[k].name, difference.category_ap[k]);
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const auto& row) { return row.second.value; });
  if (!std::isnan(difference.ap.value)) rows.insert(rows.begin(), {"all classes", difference.ap});
  double most = .01;
  for (const auto& [name, one] : rows)
    most = std::max({most, std::abs(one.low), std::abs(one.high)});
  most = round_up(most);

  const double height = kRow * static_cast<double>(rows.size() + 2);
  const auto at = [&](double value) { return kLabel + kField * (value + most) / (2 * most); };
  std::string out =
      begin_svg(kLabel + kField + 80, height, "chart", "Difference of AP of each class");
  for (const double value : {-most, -most / 2, 0., most / 2, most}) {
    stroke(out, at(value), kRow, at(value), height - kRow, value == 0 ? "axis" : "grid");
    words(out, at(value), 12, "tick middle", value == 0 ? "0" : fmt::format("{:+g}", 100 * value));
  }
  double y = 1.5 * kRow;
  for (const auto& [name, one] : rows) {
    const char* style = one.low > 0 ? "better" : one.high < 0 ? "worse" : "unsure";
    words(out, kLabel - 8, y + 4, "label end", name);
    stroke(out, at(one.low), y, at(one.high), y, style);
    out += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n", style,
                       at(one.value), y);
    words(out, kLabel + kField + 76, y + 4, "value end", fmt::format("{:+.2f}", 100 * one.value));
    y += kRow;
  }
  return out + "</svg>\n";
}

}  // namespace millrace::coco
