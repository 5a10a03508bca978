#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "millrace/tools/formats/all_formats.h"
#include "millrace/tools/formats/files/outlines.h"
#include "millrace/tools/formats/writers/losses.h"
#include "millrace/tools/formats/writers/writing.h"

namespace millrace::formats {
namespace {

constexpr int kShareDecimals = 9;  // a millionth of a pixel, and less

/// "x y" as shares of the image's sides, for each point.
std::string share_text(std::span<const double> points, const coco::Image& image) {
  std::string text;
  for (std::size_t i = 0; i < points.size(); ++i)
    text +=
        " " + decimal_text(points[i] / (i % 2 == 0 ? image.width : image.height), kShareDecimals);
  return text;
}

std::string box_line(const coco::Annotation& object, const coco::Image& image) {
  const auto [x, y, width, height] = object.bbox;
  const double numbers[] = {x + width / 2, y + height / 2, width, height};
  return share_text(numbers, image);
}

class YoloWriter {
 public:
  YoloWriter(std::span<const Split> splits, bool with_shapes, coco::Findings& findings)
      : classes_(splits), with_shapes_(with_shapes), findings_(findings) {}

  const ClassList& classes() const { return classes_; }

  std::string label_text(const coco::Dataset& data, const coco::Image& image) {
    const auto objects = data.objects(image);
    const bool draws = with_shapes_ && std::ranges::any_of(objects, [](const auto& one) {
                         return !one.crowd && one.shape.kind != coco::ShapeKind::none;
                       });
    std::string text;
    for (const auto& object : objects) {
      const auto lose = [&](const coco::FindingKind& kind) {
        tell_lost(findings_, kind, data, image, object);
      };
      if (object.crowd) {
        lose(kCrowdLost);
        continue;
      }
      tell_marks_lost(findings_, data, image, object);
      if (!with_shapes_ && object.shape.kind != coco::ShapeKind::none) lose(kShapeLost);
      text += fmt::format(
          "{}{}\n", classes_.position(data, object.category_id),
          draws ? share_text(polygon_of(data, object, lose), image) : box_line(object, image));
    }
    return text;
  }

 private:
  template <class Lose>
  coco::Polygon polygon_of(const coco::Dataset& data, const coco::Annotation& object,
                           const Lose& lose) {
    const auto shape = data.segmentation(object);
    std::vector<coco::Polygon> polygons;
    if (const auto* mask = std::get_if<coco::Rle>(&shape)) {
      polygons = outlines_of(*mask);
      lose(kMaskOutlined);
    } else if (const auto* drawn = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      polygons = *drawn;
    }
    if (polygons.empty()) {
      lose(kBoxAsShape);
      const auto [x, y, width, height] = object.bbox;
      return {x, y, x + width, y, x + width, y + height, x, y + height};
    }
    if (polygons.size() > 1) lose(kPartsBridged);
    return bridged(polygons);
  }

  const ClassList classes_;
  const bool with_shapes_;
  coco::Findings& findings_;
};

void write_yolo_folder(std::span<const Split> splits, const std::filesystem::path& out,
                       bool with_shapes, coco::Findings& findings) {
  YoloWriter writer(splits, with_shapes, findings);
  std::string yaml = "# Written by trainer import; paths count from this file's folder.\n";
  for (const auto& [name, split] : named_splits(splits)) {
    const auto inner = name == kWhole ? Place() : name;
    const auto& data = *split->data;
    UniqueStems stems;
    for (const auto& image : data.images) {
      const Place file(data.text(image.file_name));
      stems.add(file);
      place_file(split->images / file, out / "images" / inner / file);
      write_new_file(out / "labels" / inner / (without_extension(file) + ".txt"),
                     writer.label_text(data, image));
    }
    if (name != kWhole) yaml += fmt::format("{}: images/{}\n", name, name);
  }
  const auto& names = writer.classes().names();
  yaml += fmt::format("nc: {}\nnames:\n", names.size());
  for (std::size_t k = 0; k < names.size(); ++k)
    yaml += fmt::format("  {}: {}\n", k, json_quoted(names[k]));
  write_new_file(out / "data.yaml", yaml);
}

}  // namespace

void write_yolo(std::span<const Split> splits, const std::filesystem::path& out,
                coco::Findings& findings) {
  write_yolo_folder(splits, out, /*with_shapes=*/false, findings);
}

void write_yolo_segments(std::span<const Split> splits, const std::filesystem::path& out,
                         coco::Findings& findings) {
  write_yolo_folder(splits, out, /*with_shapes=*/true, findings);
}

}  // namespace millrace::formats
