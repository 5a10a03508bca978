#include "millrace/tools/report/gallery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace millrace::report {
namespace {

using nlohmann::ordered_json;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return text;
}

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
  for (const auto& [name, value] : picture.figures) figures[name] = rounded(value, 6);
  json["tags"] = picture.tags;
  auto& found = json["found"] = ordered_json::array();
  auto annotated = ordered_json::array();
  for (const Shape& shape : picture.shapes)
    (shape.kind == Shape::found ? found : annotated).push_back(to_json(shape));
  json["truth"] = std::move(annotated);
  if (!picture.jpeg.empty()) json["jpeg"] = base64(picture.jpeg);
  return json;
}

ordered_json to_json(const Gallery& gallery) {
  auto images = ordered_json::array();
  for (const Picture& picture : gallery.pictures) images.push_back(to_json(picture));
  return {{"classes", gallery.categories}, {"score", gallery.score}, {"images", images}};
}

}  // namespace millrace::report
