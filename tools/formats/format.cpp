#include "millrace/tools/formats/format.h"

#include <fmt/format.h>

#include <array>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace::formats {

std::span<const Format> formats() {
  static constexpr std::array kFormats = {
      Format{"coco", "COCO: a JSON file per split", detect_coco, read_coco},
      Format{"csv", "tables of boxes: a CSV file per split", detect_csv, read_csv},
      Format{"labelme", "LabelMe: a JSON file per image", detect_labelme, read_labelme},
      Format{"masks", "PNG masks: a file per image with a value per object, or a file per object",
             detect_masks, read_masks},
      Format{"voc", "Pascal VOC: an XML file per image", detect_voc, read_voc},
      Format{"yolo", "YOLO: a text file of boxes or polygons per image", detect_yolo, read_yolo}};
  return kFormats;
}

const Format& find_format(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& one : formats()) {
    if (one.name == name) return one;
    known.emplace_back(one.name);
  }
  throw ConfigError(fmt::format("unknown format '{}'{}", name, suggestion(name, known)));
}

Detected detect_format(const Listing& folder) {
  std::vector<Detected> found;
  for (const auto& one : formats())
    if (auto why = one.detect(folder)) found.push_back({&one, *std::move(why)});
  if (found.size() == 1) return found[0];
  if (!found.empty()) {
    std::vector<std::string> reasons;
    for (const auto& [format, why] : found)
      reasons.push_back(fmt::format("{} ({})", format->name, why));
    throw ConfigError(fmt::format("{} has labels in several formats: {}; choose one with --format",
                                  folder.root().string(), joined(reasons)));
  }
  std::string known;
  for (const auto& one : formats()) known += fmt::format("\n  {}", one.title);
  throw ConfigError(
      fmt::format("{}: no labels found among its files ({}). Known formats (docs/own-data.md):{}",
                  folder.root().string(), folder.counts(), known));
}

}  // namespace millrace::formats
