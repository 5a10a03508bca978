// Charts show what they are given: no value lies elsewhere, none of the extremes is left out.
#include "millrace/page/charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/page/pages.h"

namespace millrace::page {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

LineChart one(std::vector<PlotPoint> points) {
  return {.title = "t", .x_name = "step", .y_name = "y", .series = {{"s", std::move(points)}}};
}

TEST(Svg, PointsLieWhereTheAxesSay) {
  Plot plot(168, 156, {0, 10, 2, "x"}, {0, 1, 2, "y"}, "a test");
  const PlotPoint ends[] = {{0, 0}, {10, 1}};
  plot.line(ends, "curve", "a line");
  // The field is 100 x 100 pixels from (56, 12) on; y grows upwards.
  EXPECT_THAT(plot.svg(), HasSubstr("points=\"56.0,112.0 156.0,12.0 \""));
}

TEST(Svg, ALogarithmicAxisHasEqualFactorsAtEqualDistances) {
  Plot plot(168, 156, {0, 2, 2, "x"}, {1, 100, 0, "y", true}, "a test");
  const PlotPoint points[] = {{0, 1}, {1, 10}, {2, 100}};
  plot.line(points, "curve", "a line");
  EXPECT_THAT(plot.svg(), HasSubstr("points=\"56.0,112.0 106.0,62.0 156.0,12.0 \""));
}

TEST(Svg, RoundsUpToOneTwoOrFive) {
  for (const auto& [value, rounded] : std::vector<std::pair<double, double>>{
           {1, 1}, {1.1, 2}, {3, 5}, {7, 10}, {0.3, 0.5}, {120, 200}, {1e6, 1e6}})
    EXPECT_NEAR(round_up(value), rounded, 1e-9 * rounded) << value;
}

TEST(LineChart, ALongSeriesKeepsItsExtremes) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({double(i), std::sin(i * .01)});
  points[54'321].y = 77, points[12'345].y = -88;
  const std::string html = line_chart(one(points));
  EXPECT_LT(html.size(), 40'000);
  EXPECT_THAT(html, HasSubstr("54321,77,"));
  EXPECT_THAT(html, HasSubstr("12345,-88,"));
  testing::expect_balanced(html);
}

TEST(LineChart, WhatIsNotFiniteInterruptsTheLine) {
  const std::string html = line_chart(one({{1, 1}, {2, 2}, {3, kNan}, {4, 3}, {5, 4}}));
  EXPECT_EQ(count(html, "<polyline"), 2);
  EXPECT_THAT(html, HasSubstr("3,null,"));
  EXPECT_THAT(html, Not(ContainsRegex("[ \",]-?(nan|inf)")));
  EXPECT_THAT(line_chart(one({{1, kNan}, {2, kNan}})), HasSubstr("No values."));
  EXPECT_THAT(line_chart(one({})), HasSubstr("No values."));
}

TEST(LineChart, ALogarithmicAxisLeavesOutWhatItCannotShow) {
  LineChart chart = one({{1, 0}, {2, .1}, {3, 10}});
  chart.logarithmic_too = true;
  const std::string html = line_chart(chart);
  testing::expect_balanced(html);
  EXPECT_EQ(count(html, "<svg class=\"plot\""), 2);
  EXPECT_THAT(html, Not(ContainsRegex("[ \",]-?(nan|inf)")));
  chart.series[0].points = {{1, 0}, {2, -1}};
  EXPECT_EQ(count(line_chart(chart), "<svg class=\"plot\""), 1);
}

TEST(LineChart, OnePointIsADot) {
  EXPECT_THAT(line_chart(one({{492, 11.3}})), HasSubstr("<circle class=\"c0\""));
}

TEST(LineChart, NamesAreText) {
  LineChart chart = one({{1, 1}, {2, 2}});
  chart.title = chart.series[0].name = "<i>\"'&";
  const std::string html = line_chart(chart);
  testing::expect_balanced(html);
  EXPECT_THAT(html, Not(HasSubstr("<i>")));
}

TEST(Bars, TheLongestFillsTheField) {
  const std::vector<Bar> bars{{"a", 1}, {"<b>", 4, "four", "note"}, {"c", 0}};
  const std::string html = bar_chart(bars, "bars");
  testing::expect_balanced(html);
  EXPECT_THAT(html, HasSubstr("width=\"240.0\""));
  EXPECT_THAT(html, HasSubstr("width=\"60.0\""));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;"));
  EXPECT_EQ(bar_chart({}, "bars"), "");
}

TEST(Histogram, EachCountHasItsBar) {
  const std::vector<double> edges{0, 1, 2, 3};
  const std::vector<std::int64_t> counts{5, 0, 10};
  const std::string html = histogram(edges, counts, "x", "a histogram");
  testing::expect_balanced(html);
  EXPECT_THAT(html, HasSubstr("<title>2 to 3: 10</title>"));
  EXPECT_THAT(html, HasSubstr("height=\"180.0\""));
  EXPECT_THAT(html, HasSubstr("height=\"90.0\""));
}

}  // namespace
}  // namespace millrace::page
