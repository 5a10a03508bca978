#include "millrace/coco/sample/sample_shapes.h"

#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>

namespace millrace::coco {
namespace {

using Contour = std::vector<cv::Point2d>;
using std::numbers::pi;

cv::Point2d polar(double radius, double angle) {
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

Contour arc(cv::Point2d centre, double radius, double from, double to) {
  constexpr int steps = 48;
  Contour points;
  for (int i = 0; i <= steps; ++i)
    points.push_back(centre + polar(radius, from + (to - from) * i / steps));
  return points;
}

/// Rounds each corner: replaces `share` of both its edges by a chord, twice.
Contour rounded(Contour points, double share) {
  for (const double cut : {share, 0.3}) {
    Contour next;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto a = points[i], b = points[(i + 1) % points.size()];
      next.push_back(a + (b - a) * cut);
      next.push_back(b - (b - a) * cut);
    }
    points = std::move(next);
  }
  return points;
}

Outline star(Rng& rng) {
  const double inner = rng.uniform(0.40, 0.50);
  Contour points;
  for (int i = 0; i < 10; ++i) points.push_back(polar(i % 2 ? inner : 1.0, i * pi / 5));
  return {rounded(points, 0.07)};
}

Outline ring(Rng& rng) {
  const double hole = rng.uniform(0.48, 0.62);
  return {arc({}, 1, 0, 2 * pi), arc({}, hole, 0, 2 * pi)};
}

Outline heart(Rng&) {
  Contour points;
  for (int i = 0; i < 72; ++i) {
    const double t = i * 2 * pi / 72;
    points.emplace_back(16 * std::pow(std::sin(t), 3), -13 * std::cos(t) + 5 * std::cos(2 * t) +
                                                           2 * std::cos(3 * t) + std::cos(4 * t));
    points.back() *= 1 / 16.0;
  }
  return {points};
}

/// Returns a disc minus another of similar size: two arcs between the intersections of the circles.
Outline crescent(Rng& rng) {
  const double radius = rng.uniform(0.80, 0.95), shift = rng.uniform(0.42, 0.55);
  // X of the intersections.
  const double along = (1 + shift * shift - radius * radius) / (2 * shift);
  const double outside = std::acos(along), inside = std::acos((along - shift) / radius);
  auto points = arc({}, 1, outside, 2 * pi - outside);
  const auto bite = arc({shift, 0}, radius, 2 * pi - inside, inside);
  points.insert(points.end(), bite.begin() + 1, bite.end() - 1);
  return {points};
}

Outline cross(Rng& rng) {
  const double w = rng.uniform(0.27, 0.38);
  const Contour corners = {{w, w},   {1, w},   {1, -w}, {w, -w}, {w, -1}, {-w, -1},
                           {-w, -w}, {-1, -w}, {-1, w}, {-w, w}, {-w, 1}, {w, 1}};
  return {rounded(corners, 0.08)};
}

Outline triangle(Rng&) {
  return {rounded({polar(1, 0), polar(1, 2 * pi / 3), polar(1, 4 * pi / 3)}, 0.06)};
}

constexpr Kind kKinds[] = {
    {"star", star, 1.4},         {"ring", ring, 1.4},   {"heart", heart, 1.15},
    {"crescent", crescent, 1.4}, {"cross", cross, 1.4}, {"triangle", triangle, 1.15},
};

/// Inserts points so that no edge is longer than `step`.
Contour densified(const Contour& points, double step) {
  Contour dense;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto a = points[i], b = points[(i + 1) % points.size()];
    const int pieces = std::max(1, static_cast<int>(std::ceil(cv::norm(b - a) / step)));
    for (int k = 0; k < pieces; ++k)
      dense.push_back(a + (b - a) * (static_cast<double>(k) / pieces));
  }
  return dense;
}

/// Moves every point along a slow wave, so that outlines of the same kind differ.
void bend(Outline& outline, double amount, Rng& rng) {
  const double fx = rng.uniform(1.5, 3), fy = rng.uniform(1.5, 3), px = rng.uniform(0, 2 * pi),
               py = rng.uniform(0, 2 * pi);
  for (auto& contour : outline) {
    contour = densified(contour, 0.12);
    for (auto& p : contour)
      p += cv::Point2d(amount * std::sin(fy * p.y + py), amount * std::sin(fx * p.x + px));
  }
}

/// Returns the area by the even-odd rule. REQUIRES: the outer contour comes before its holes.
double area_of(const Outline& outline) {
  double total = 0;
  for (const auto& contour : outline) {
    double twice = 0;
    for (std::size_t i = 0; i < contour.size(); ++i)
      twice += contour[i].cross(contour[(i + 1) % contour.size()]);
    total += (&contour == &outline.front() ? 0.5 : -0.5) * std::abs(twice);
  }
  return total;
}

}  // namespace

std::span<const Kind> kinds() { return kKinds; }

Outline draw_outline(const Kind& kind, double area, Rng& rng) {
  auto outline = kind.draw(rng);
  bend(outline, 0.05, rng);
  const double turn = rng.uniform(0, 2 * pi), lean = rng.uniform(0, pi),
               stretch = rng.uniform(1.0, 1.35);
  const auto rotated = [](cv::Point2d p, double angle) {
    return cv::Point2d(p.x * std::cos(angle) - p.y * std::sin(angle),
                       p.x * std::sin(angle) + p.y * std::cos(angle));
  };
  const double scale = std::sqrt(area / (area_of(outline) * stretch));
  for (auto& contour : outline)
    for (auto& p : contour) {
      p = rotated(p, turn);
      p.x *= stretch;
      p = rotated(p, lean) * scale;
    }
  return outline;
}

Outline draw_stick(cv::Point2d centre, double angle, double length, double width, Rng& rng) {
  const double l = length / width;
  Outline outline = {rounded({{l, 0.5}, {l, -0.5}, {-l, -0.5}, {-l, 0.5}}, 0.06)};
  const double sway = rng.uniform(0.1, 0.5), phase = rng.uniform(0, 2 * pi);
  outline[0] = densified(outline[0], 0.25);
  const auto along = polar(width / 2, angle), across = polar(width, angle + pi / 2);
  for (auto& p : outline[0])
    p = centre + along * p.x + across * (p.y + sway * std::sin(p.x * 0.35 + phase));
  return outline;
}

Stamp rasterize(const Outline& outline) {
  constexpr int scale = 4;  // sub-pixels per side
  constexpr int shift = 4;  // fraction bits of fillPoly
  cv::Point2d low = outline[0][0], high = low;
  for (const auto p : outline[0]) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  }
  Stamp stamp;
  stamp.origin = {cvFloor(low.x) - 1, cvFloor(low.y) - 1};
  const cv::Size size(cvCeil(high.x) + 1 - stamp.origin.x, cvCeil(high.y) + 1 - stamp.origin.y);

  std::vector<std::vector<cv::Point>> contours;
  for (const auto& contour : outline) {
    auto& fixed = contours.emplace_back();
    for (const auto p : contour)  // the centre of sub-pixel 0 is at 0.5 / scale pixels
      fixed.emplace_back(cvRound(((p.x - stamp.origin.x) * scale - 0.5) * (1 << shift)),
                         cvRound(((p.y - stamp.origin.y) * scale - 0.5) * (1 << shift)));
  }
  cv::Mat1b fine(size * scale, std::uint8_t{0});
  cv::fillPoly(fine, contours, cv::Scalar(255), cv::LINE_8, shift);
  cv::resize(fine, stamp.coverage, size, 0, 0, cv::INTER_AREA);
  stamp.area = cv::countNonZero(stamp.coverage >= 128);
  return stamp;
}

}  // namespace millrace::coco
