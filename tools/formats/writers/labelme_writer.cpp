#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "millrace/tools/formats/all_formats.h"
#include "millrace/tools/formats/files/base64.h"
#include "millrace/tools/formats/files/png_values.h"
#include "millrace/tools/formats/writers/losses.h"
#include "millrace/tools/formats/writers/writing.h"

namespace millrace::formats {
namespace {

using LabelMeJson = nlohmann::ordered_json;

LabelMeJson points_of(std::span<const double> numbers) {
  auto points = LabelMeJson::array();
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
    points.push_back({numbers[i], numbers[i + 1]});
  return points;
}

LabelMeJson shape_json(const std::string& label, LabelMeJson points, const char* type,
                       LabelMeJson group, LabelMeJson mask = nullptr) {
  return {{"label", label},         {"points", std::move(points)}, {"group_id", std::move(group)},
          {"description", ""},      {"shape_type", type},          {"flags", LabelMeJson::object()},
          {"mask", std::move(mask)}};
}

/// LabelMe 5's mask: the bitmap of its box, and the first and last pixel of that.
LabelMeJson mask_json(const std::string& label, const coco::Rle& mask) {
  const Box box = coco::bounding_box(mask);
  const auto width = static_cast<std::uint32_t>(box.width()),
             height = static_cast<std::uint32_t>(box.height());
  const auto part = coco::window(mask, static_cast<std::int64_t>(box.x1),
                                 static_cast<std::int64_t>(box.y1), height, width);
  std::vector<std::uint8_t> bitmap(std::size_t{width} * height);
  coco::decode(part, bitmap.data());
  PngValues picture{width, height, false, {bitmap.begin(), bitmap.end()}};
  const double corners[] = {box.x1, box.y1, box.x2 - 1, box.y2 - 1};
  return shape_json(label, points_of(corners), "mask", nullptr, to_base64(png_of_values(picture)));
}

LabelMeJson file_json(const coco::Dataset& data, const coco::Image& image, const ClassList& classes,
                      coco::Findings& findings) {
  auto shapes = LabelMeJson::array();
  int group = 0;
  for (const auto& object : data.objects(image)) {
    if (object.crowd) {
      tell_lost(findings, kCrowdLost, data, image, object);
      continue;
    }
    tell_marks_lost(findings, data, image, object);
    const auto& label = classes.name(data, object.category_id);
    const auto shape = data.segmentation(object);
    const auto* mask = std::get_if<coco::Rle>(&shape);
    if (mask && coco::area(*mask) > 0) {
      shapes.push_back(mask_json(label, *mask));
    } else if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      const auto own = polygons->size() > 1 ? LabelMeJson(++group) : LabelMeJson(nullptr);
      for (const auto& polygon : *polygons)
        shapes.push_back(shape_json(label, points_of(polygon), "polygon", own));
    } else {
      const auto [x, y, width, height] = object.bbox;
      const double corners[] = {x, y, x + width, y + height};
      shapes.push_back(shape_json(label, points_of(corners), "rectangle", nullptr));
    }
  }
  const Place file(data.text(image.file_name));
  return {{"version", "5.5.0"},          {"flags", LabelMeJson::object()},
          {"shapes", std::move(shapes)}, {"imagePath", file.substr(file.rfind('/') + 1)},
          {"imageData", nullptr},        {"imageHeight", image.height},
          {"imageWidth", image.width}};
}

}  // namespace

void write_labelme(std::span<const Split> splits, const std::filesystem::path& out,
                   coco::Findings& findings) {
  const ClassList classes(splits);
  for (const auto& [name, split] : named_splits(splits)) {
    const auto folder = name == kWhole ? out : out / name;
    const auto& data = *split->data;
    UniqueStems stems;
    for (const auto& image : data.images) {
      const Place file(data.text(image.file_name));
      stems.add(file);
      place_file(split->images / file, folder / file);
      write_new_file(folder / (without_extension(file) + ".json"),
                     file_json(data, image, classes, findings)
                             .dump(2, ' ', false, LabelMeJson::error_handler_t::replace) +
                         "\n");
    }
  }
}

}  // namespace millrace::formats
