#include "millrace/tools/report/gallery.h"

#include <fmt/format.h>

#include <cmath>

#include "millrace/base/base64.h"

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

}  // namespace millrace::report
