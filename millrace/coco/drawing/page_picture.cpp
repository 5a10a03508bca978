#include "millrace/coco/drawing/page_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "millrace/coco/picture/encode.h"

namespace millrace::coco {
namespace {

constexpr int kLeastSide = 64;

/// The picture with a longer side of at most so many pixels.
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

/// Appends a closed ring; nothing for fewer than three corners.
void put_ring(std::string& path, const std::vector<cv::Point>& ring) {
  if (ring.size() < 3) return;
  path += fmt::format("M{} {}l", ring[0].x, ring[0].y);
  for (std::size_t i = 1; i < ring.size(); ++i)
    path += fmt::format("{}{} {}", i == 1 ? "" : " ", ring[i].x - ring[i - 1].x,
                        ring[i].y - ring[i - 1].y);
  path += 'z';
}

std::vector<cv::Point> simplified(const std::vector<cv::Point>& ring, double tolerance) {
  std::vector<cv::Point> few;
  cv::approxPolyDP(ring, few, tolerance, /*closed=*/true);
  return few;
}

}  // namespace

std::string thumbnail(const cv::Mat& rgb, std::size_t most_bytes, int most_side) {
  for (int side = std::min(most_side, std::max(rgb.cols, rgb.rows));; side = side * 4 / 5) {
    const cv::Mat small = shrunk(rgb, std::max(side, kLeastSide));
    for (const int quality : {82, 70, 58}) {
      const std::string bytes = encode_jpeg(small, quality);
      if (bytes.size() <= most_bytes) return bytes;
      if (bytes.size() > 2 * most_bytes) break;  // too large at any quality
    }
    if (side <= kLeastSide) return encode_jpeg(small, 58);
  }
}

std::string outline_path(const Rle& mask, double tolerance) {
  const Box box = bounding_box(mask);
  if (!box.has_area()) return "";
  const auto x = static_cast<int>(box.x1), y = static_cast<int>(box.y1);
  const Rle cut = window(mask, x, y, static_cast<std::uint32_t>(box.height()),
                         static_cast<std::uint32_t>(box.width()));
  cv::Mat1b inside(static_cast<int>(cut.height), static_cast<int>(cut.width));
  decode(cut, inside.data);
  std::vector<std::vector<cv::Point>> rings;
  cv::findContours(inside, rings, cv::RETR_CCOMP, cv::CHAIN_APPROX_NONE, cv::Point(x, y));
  std::string path;
  for (const auto& ring : rings) put_ring(path, simplified(ring, tolerance));
  return path;
}

std::string outline_path(std::span<const Polygon> polygons, double tolerance) {
  std::string path;
  for (const Polygon& polygon : polygons) {
    std::vector<cv::Point> ring;
    for (std::size_t i = 0; i + 1 < polygon.size(); i += 2)
      ring.emplace_back(static_cast<int>(std::lround(polygon[i])),
                        static_cast<int>(std::lround(polygon[i + 1])));
    put_ring(path, simplified(ring, tolerance));
  }
  return path;
}

}  // namespace millrace::coco
