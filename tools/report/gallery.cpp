#include "millrace/tools/report/gallery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <span>
#include <variant>

#include "millrace/base/base64.h"
#include "millrace/coco/picture/encode.h"

namespace millrace::report {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Shape& shape) {
  auto box = ordered_json::array();
  for (const float value : shape.box) box.push_back(rounded(value, 5));
  ordered_json json = {{"class", shape.category}, {"box", std::move(box)}};
  if (shape.kind == Shape::found) json["score"] = rounded(shape.score, 4);
  if (!shape.outline.empty()) json["outline"] = shape.outline;
  if (shape.crowd) json["crowd"] = true;
  if (!shape.note.empty()) json["note"] = shape.note;
  if (shape.found_at >= 0) json["found_at"] = rounded(shape.found_at, 4);
  return json;
}

constexpr int kLeastSide = 64;

/// Returns the image with a longer side of up to `side` pixels.
cv::Mat shrunk(const cv::Mat& rgb, int side) {
  const double scale = static_cast<double>(side) / std::max(rgb.cols, rgb.rows);
  if (scale >= 1) return rgb;
  const auto pixels = [&](int length) {
    return std::max(1, static_cast<int>(std::lround(length * scale)));
  };
  cv::Mat small;
  cv::resize(rgb, small, cv::Size(pixels(rgb.cols), pixels(rgb.rows)), 0, 0, cv::INTER_AREA);
  return small;
}

/// Adds a simplified ring if it has three or more corners.
void add_ring(Rings& rings, const std::vector<cv::Point>& ring, double tolerance) {
  if (ring.size() < 3) return;
  std::vector<cv::Point> few;
  cv::approxPolyDP(ring, few, tolerance, /*closed=*/true);
  if (few.size() < 3) return;
  auto& added = rings.emplace_back();
  for (const cv::Point& corner : few) added.insert(added.end(), {corner.x, corner.y});
}

Rings rings_of(const coco::Rle& mask, double tolerance) {
  const Box box = bounding_box(mask);
  if (!box.has_area()) return {};
  const auto x = static_cast<int>(box.x1), y = static_cast<int>(box.y1);
  const coco::Rle cut = window(mask, x, y, static_cast<std::uint32_t>(box.height()),
                               static_cast<std::uint32_t>(box.width()));
  cv::Mat1b inside(static_cast<int>(cut.height), static_cast<int>(cut.width));
  decode(cut, inside.data);
  std::vector<std::vector<cv::Point>> contours;
  cv::findContours(inside, contours, cv::RETR_CCOMP, cv::CHAIN_APPROX_NONE, cv::Point(x, y));
  Rings rings;
  for (const auto& contour : contours) add_ring(rings, contour, tolerance);
  return rings;
}

Rings rings_of(std::span<const coco::Polygon> polygons, double tolerance) {
  Rings rings;
  for (const coco::Polygon& polygon : polygons) {
    std::vector<cv::Point> ring;
    for (std::size_t i = 0; i + 1 < polygon.size(); i += 2)
      ring.emplace_back(static_cast<int>(std::lround(polygon[i])),
                        static_cast<int>(std::lround(polygon[i + 1])));
    add_ring(rings, ring, tolerance);
  }
  return rings;
}

}  // namespace

double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  return std::stod(fmt::format("{:.{}g}", value, digits));
}

ordered_json to_json(const Picture& picture) {
  ordered_json json = {
      {"name", picture.title}, {"width", picture.width}, {"height", picture.height}};
  if (!picture.caption.empty()) json["note"] = picture.caption;
  auto& figures = json["figures"] = ordered_json::object();
  for (const auto& [name, value] : picture.metrics) figures[name] = rounded(value, 6);
  json["tags"] = picture.tags;
  auto& found = json["found"] = ordered_json::array();
  auto annotated = ordered_json::array();
  for (const Shape& shape : picture.shapes)
    (shape.kind == Shape::found ? found : annotated).push_back(to_json(shape));
  json["truth"] = std::move(annotated);
  if (!picture.jpeg.empty()) json["jpeg"] = to_base64(picture.jpeg);
  return json;
}

ordered_json to_json(const Gallery& gallery) {
  auto images = ordered_json::array();
  for (const Picture& picture : gallery.pictures) images.push_back(to_json(picture));
  return {{"classes", gallery.categories}, {"score", gallery.score}, {"images", images}};
}

std::string thumbnail(const cv::Mat& rgb, std::size_t most_bytes, int most_side) {
  for (int side = std::min(most_side, std::max(rgb.cols, rgb.rows));; side = side * 4 / 5) {
    const cv::Mat small = shrunk(rgb, std::max(side, kLeastSide));
    for (const int quality : {82, 70, 58}) {
      const std::string bytes = coco::encode_jpeg(small, quality);
      if (bytes.size() <= most_bytes) return bytes;
      if (bytes.size() > 2 * most_bytes) break;  // too large at any quality
    }
    if (side <= kLeastSide) return coco::encode_jpeg(small, 58);
  }
}

Rings outline_of(const coco::Segmentation& shape, double tolerance) {
  if (const auto* mask = std::get_if<coco::Rle>(&shape)) return rings_of(*mask, tolerance);
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape))
    return rings_of(*polygons, tolerance);
  return {};
}

double outline_tolerance(cv::Size image, int side) {
  constexpr double kSeen = 0.7;  // visible difference in pixels of the thumbnail
  return kSeen * std::max(1., static_cast<double>(std::max(image.width, image.height)) / side);
}

}  // namespace millrace::report
