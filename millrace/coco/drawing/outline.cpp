#include "millrace/coco/drawing/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <opencv2/imgproc.hpp>

namespace millrace::coco {
namespace {

/// Appends a closed path through points, those that lie on the way to the next left out.
void append_path(std::string& path, const std::vector<cv::Point2f>& points, cv::Point2f by,
                 double tolerance) {
  std::vector<cv::Point2f> kept;
  cv::approxPolyDP(points, kept, tolerance, /*closed=*/true);
  if (kept.size() < 3) kept = points;  // so thin that nothing would be left
  if (kept.empty()) return;
  const int digits = tolerance < 1 ? 1 : 0;
  for (std::size_t i = 0; i < kept.size(); ++i)
    fmt::format_to(std::back_inserter(path), "{}{:.{}f} {:.{}f}", i == 0 ? 'M' : 'L',
                   kept[i].x + by.x, digits, kept[i].y + by.y, digits);
  path += 'z';
}

std::string outline_of(const std::vector<Polygon>& polygons, double tolerance) {
  std::string path;
  for (const auto& polygon : polygons) {
    std::vector<cv::Point2f> points;
    for (std::size_t i = 0; i + 1 < polygon.size(); i += 2)
      points.emplace_back(static_cast<float>(polygon[i]), static_cast<float>(polygon[i + 1]));
    append_path(path, points, {}, tolerance);
  }
  return path;
}

std::string outline_of(const Rle& mask, double tolerance) {
  const Box box = bounding_box(mask);
  if (!box.has_area()) return "";
  const auto width = static_cast<int>(box.width()), height = static_cast<int>(box.height());
  cv::Mat1b bitmap(height, width);
  decode(window(mask, static_cast<std::int64_t>(box.x1), static_cast<std::int64_t>(box.y1),
                static_cast<std::uint32_t>(height), static_cast<std::uint32_t>(width)),
         bitmap.data);
  std::vector<std::vector<cv::Point>> edges;
  cv::findContours(bitmap, edges, cv::RETR_CCOMP, cv::CHAIN_APPROX_NONE);
  std::string path;
  for (const auto& edge : edges)  // through the centres of pixels
    append_path(path, {edge.begin(), edge.end()}, {box.x1 + .5F, box.y1 + .5F}, tolerance);
  return path;
}

}  // namespace

std::string outline(const Segmentation& shape, double tolerance) {
  if (const auto* mask = std::get_if<Rle>(&shape)) return outline_of(*mask, tolerance);
  if (const auto* polygons = std::get_if<std::vector<Polygon>>(&shape))
    return outline_of(*polygons, tolerance);
  return "";
}

}  // namespace millrace::coco
