#include "millrace/tools/formats/files/voc_file.h"

#include <fmt/format.h>

#include <pugixml.hpp>
#include <string_view>
#include <unordered_map>

#include "millrace/base/errors.h"

namespace millrace::formats {
namespace {

std::string text_in(const pugi::xml_node& node, const char* name) {
  return std::string(trimmed(node.child_value(name)));
}

/// Reads a polygon with corners <pt><x/><y/></pt> or <x1/><y1/><x2/><y2/>. Returns an empty one if
/// it is incomplete.
coco::Polygon polygon_in(const pugi::xml_node& node) {
  coco::Polygon polygon;
  const auto add = [&](const std::string& x, const std::string& y) {
    const auto a = number_in(x), b = number_in(y);
    if (a && b) polygon.insert(polygon.end(), {*a, *b});
    return a && b;
  };
  for (const auto& point : node.children("pt"))
    if (!add(text_in(point, "x"), text_in(point, "y"))) return {};
  if (!polygon.empty()) return polygon;
  std::unordered_map<std::string_view, pugi::xml_node> by_name;
  for (const auto& child : node.children()) by_name.try_emplace(child.name(), child);
  const auto find = [&](char axis, int number) {
    const auto found = by_name.find(fmt::format("{}{}", axis, number));
    return found == by_name.end() ? pugi::xml_node() : found->second;
  };
  for (int i = 1; const auto x = find('x', i); ++i)
    if (!add(std::string(trimmed(x.child_value())),
             std::string(trimmed(find('y', i).child_value()))))
      return {};
  return polygon;
}

/// Reads an object. Returns why it is invalid; empty if it is valid.
std::string read_object(const pugi::xml_node& node, VocObject& object) {
  object.name = text_in(node, "name");
  if (object.name.empty()) return "<object> without a <name>";
  object.difficult = text_in(node, "difficult") == "1";
  for (const auto& one : node.children("polygon"))
    if (auto polygon = polygon_in(one); polygon.size() >= 6)
      object.polygons.push_back(std::move(polygon));
  const auto box = node.child("bndbox");
  if (!box) return fmt::format("'{}' without a <bndbox>", object.name);
  const struct {
    const char* name;
    double& value;
  } corners[] = {
      {"xmin", object.x1}, {"ymin", object.y1}, {"xmax", object.x2}, {"ymax", object.y2}};
  for (const auto& [name, value] : corners) {
    const auto text = text_in(box, name);
    const auto number = number_in(text);
    if (!number) return fmt::format("<{}> is '{}', which is not a number", name, text);
    value = *number;
  }
  return {};
}

}  // namespace

VocFile parse_voc(std::string_view xml) {
  const LineCounter lines(xml);
  pugi::xml_document document;
  const auto result = document.load_buffer(xml.data(), xml.size());
  if (!result)
    throw Error(fmt::format("line {}: {}", lines.line_of(result.offset), result.description()));
  const auto root = document.child("annotation");
  if (!root) throw Error("has no <annotation>");
  VocFile file;
  file.file_name = text_in(root, "filename");
  const auto size = root.child("size");
  file.size = given_size(integer_in(text_in(size, "width")), integer_in(text_in(size, "height")));
  for (const auto& node : root.children("object")) {
    VocObject object{.line = lines.line_of(node.offset_debug())};
    auto why = read_object(node, object);
    if (why.empty())
      file.objects.push_back(std::move(object));
    else
      file.faults.push_back({object.line, std::move(why)});
  }
  return file;
}

}  // namespace millrace::formats
