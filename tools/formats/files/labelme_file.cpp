#include "millrace/tools/formats/files/labelme_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "millrace/base/base64.h"
#include "millrace/base/errors.h"
#include "millrace/coco/data/json.h"
#include "millrace/tools/formats/files/png_masks.h"
#include "millrace/tools/formats/files/texts.h"

namespace millrace::formats {
namespace {

using coco::JsonReader;
using coco::Wrong;

/// An entry of `shapes`.
struct LabelMeShape {
  std::string label, type = "polygon", mask;
  std::vector<double> points;  // x, y of each point
  std::optional<std::int64_t> group;
};

void read_points(JsonReader& json, std::vector<double>& to) {
  json.each([&] {
    double both[2] = {};
    json.next();
    const char* at = json.at();
    if (!json.numbers_if_any(both)) throw Wrong{at, "'points' is empty; expected 2 numbers"};
    to.insert(to.end(), {both[0], both[1]});
  });
}

/// Reads a string; null leaves `to` as it is.
void read_text(JsonReader& json, std::string& to) {
  if (!json.take_null()) to = json.text();
}

LabelMeShape read_shape(JsonReader& json) {
  LabelMeShape shape;
  const char* at = json.at();
  json.fields(coco::required("label", [&] { shape.label = json.text(); }),
              coco::required("points", [&] { read_points(json, shape.points); }),
              coco::optional("shape_type", [&] { read_text(json, shape.type); }),
              coco::optional("group_id",
                             [&] {
                               if (!json.take_null()) shape.group = json.integer();
                             }),
              coco::optional("mask", [&] { read_text(json, shape.mask); }));
  if (shape.label.empty()) throw Wrong{at, "'label' is empty"};
  return shape;
}

void expect_points(const LabelMeShape& shape, std::size_t count, const char* at) {
  if (shape.points.size() != 2 * count)
    throw Wrong{
        at, fmt::format("a {} has {} points, not {}", shape.type, count, shape.points.size() / 2)};
}

/// Returns a polygon whose distance from the circle is up to a quarter of a pixel.
coco::Polygon polygon_of_circle(const std::vector<double>& points) {
  constexpr double kOff = 0.25;
  constexpr int kFewest = 12, kMost = 4096;
  const double radius = std::hypot(points[2] - points[0], points[3] - points[1]);
  const double needed = radius > kOff ? std::numbers::pi / std::acos(1 - kOff / radius) : kFewest;
  const int corners =
      std::clamp(static_cast<int>(std::min<double>(needed, kMost)) + 1, kFewest, kMost);
  coco::Polygon polygon;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * std::numbers::pi * i / corners;
    polygon.push_back(points[0] + radius * std::cos(angle));
    polygon.push_back(points[1] + radius * std::sin(angle));
  }
  return polygon;
}

coco::Rle mask_of_png(const std::string& encoded, const char* at) {
  try {
    auto picture = parse_png_values(from_base64(encoded));
    std::vector<std::uint8_t> inside;
    for (const auto value : picture.values) inside.push_back(value != 0 ? 1 : 0);
    return coco::encode(inside.data(), picture.height, picture.width);
  } catch (const Error& problem) {
    throw Wrong{at, fmt::format("'mask': {}", problem.what()), "mask"};
  }
}

/// Adds a shape to its object. Returns false for a shape without an area.
bool add_shape(const LabelMeShape& shape, const char* at, LabelMeObject& object) {
  const auto& points = shape.points;
  const bool is_polygon = shape.type == "polygon" || shape.type == "oriented_rectangle";
  if (is_polygon) {
    if (points.size() < 6)
      throw Wrong{at, fmt::format("a polygon of {} points", points.size() / 2)};
    object.polygons.push_back(points);
  } else if (shape.type == "rectangle") {
    expect_points(shape, 2, at);
    object.box = {std::min(points[0], points[2]), std::min(points[1], points[3]),
                  std::max(points[0], points[2]), std::max(points[1], points[3])};
  } else if (shape.type == "circle") {
    expect_points(shape, 2, at);
    object.polygons.push_back(polygon_of_circle(points));
  } else if (shape.type == "mask") {
    expect_points(shape, 2, at);
    object.mask = mask_of_png(shape.mask, at);
    const double x = std::round(points[0]), y = std::round(points[1]);
    constexpr double kMostAway = 1 << 20;
    if (std::abs(x) > kMostAway || std::abs(y) > kMostAway)
      throw Wrong{at, "mask is far outside its image"};
    object.box = {x, y, x + object.mask->width, y + object.mask->height};
  } else if (shape.type == "point" || shape.type == "points" || shape.type == "line" ||
             shape.type == "linestrip") {
    return false;
  } else {
    throw Wrong{at, fmt::format("unknown 'shape_type' '{}'", shape.type)};
  }
  return true;
}

/// Merges a shape of a group into its object as polygons. Returns false if one of them is a mask.
bool joins(LabelMeObject& object, LabelMeObject& part) {
  if (object.mask || part.mask) return false;
  for (auto* one : {&object, &part})
    if (one->polygons.empty()) {
      const auto [x1, y1, x2, y2] = one->box;
      one->polygons.push_back({x1, y1, x2, y1, x2, y2, x1, y2});
    }
  object.polygons.insert(object.polygons.end(), part.polygons.begin(), part.polygons.end());
  return true;
}

}  // namespace

LabelMeFile parse_labelme(std::string text, const std::string& source) {
  const LineCounter lines(text);
  LabelMeFile file;
  const coco::JsonText document(std::move(text), source);
  std::map<std::pair<std::string, std::int64_t>, std::size_t> groups;
  std::size_t index = 0;
  std::int64_t width = 0, height = 0;
  document.read('{', [&](JsonReader& json) {
    json.tolerate([&](const coco::RecordFault& fault) {
      file.faults.push_back(
          {fault.index, lines.line_of(static_cast<std::ptrdiff_t>(fault.byte)), fault.why});
    });
    const auto read_object = [&] {
      const char* at = json.at();
      const auto number = index++;
      const auto shape = read_shape(json);
      const auto line = lines.line_of(static_cast<std::ptrdiff_t>(json.offset(at)));
      LabelMeObject object{.line = line, .label = shape.label};
      if (!add_shape(shape, at, object)) {
        file.without_area.push_back({number, line, shape.type});
        return;
      }
      if (shape.group) {
        const auto [first, is_new] =
            groups.try_emplace({shape.label, *shape.group}, file.objects.size());
        if (!is_new && joins(file.objects[first->second], object)) return;
      }
      file.objects.push_back(std::move(object));
    };
    const auto side = [&](std::int64_t& to) {
      if (!json.take_null()) to = json.integer();
    };
    json.fields(coco::required("shapes", [&] { json.list("shapes", read_object); }),
                coco::optional("imagePath", [&] { read_text(json, file.image_path); }),
                coco::optional("imageData",
                               [&] {
                                 file.has_image_data = json.next() != 'n';
                                 json.skip();
                               }),
                coco::optional("imageWidth", [&] { side(width); }),
                coco::optional("imageHeight", [&] { side(height); }));
  });
  if (width > 0 && height > 0 && width < INT32_MAX && height < INT32_MAX)
    file.size = {static_cast<std::int32_t>(width), static_cast<std::int32_t>(height)};
  return file;
}

}  // namespace millrace::formats
