#include "millrace/dataflow/store/sample_json.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // linear search for keys, so only for writing

OrderedJson json_of(const coco::Segmentation& shape) {
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) return *polygons;
  const auto& mask = std::get<coco::Rle>(shape);
  return {{"size", {mask.height, mask.width}}, {"counts", coco::encode_counts(mask)}};
}

coco::Segmentation shape_of(const Json& json) {
  if (json.is_array()) return json.get<std::vector<coco::Polygon>>();
  const auto [height, width] = json.at("size").get<std::pair<std::uint32_t, std::uint32_t>>();
  const auto& counts = json.at("counts");
  if (counts.is_string())
    return coco::decode_counts(counts.get_ref<const std::string&>(), height, width);
  const coco::Rle mask{height, width, counts.get<std::vector<std::uint32_t>>()};
  return coco::decode_counts(coco::encode_counts(mask), height, width);  // checks the sum
}

/// Returns the corners of [x, y, width, height]. The numbers are sums of floats in double, so the
/// original floats result.
Box box_of(const Json& json) {
  const auto [x, y, width, height] = json.get<std::array<double, 4>>();
  return {static_cast<float>(x), static_cast<float>(y), static_cast<float>(x + width),
          static_cast<float>(y + height)};
}

std::string category_of(const Json& object) {
  if (const auto name = object.find("category"); name != object.end()) return *name;
  return std::to_string(object.at("category_id").get<std::int64_t>());
}

/// Returns a boolean that may also be written as 1 or 0.
bool flag(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return false;
  return found->is_boolean() ? found->get<bool>() : found->get<int>() != 0;
}

void add_object(const Json& object, ClassNames& classes, Instances& objects) {
  if (flag(object, "ignore") && !flag(object, "iscrowd")) return;
  objects.boxes.push_back(box_of(object.at("bbox")));
  objects.classes.push_back(classes.number(category_of(object)));
  objects.crowd.push_back(flag(object, "iscrowd"));
  const auto shape = object.find("segmentation");
  objects.segmentations.push_back(shape == object.end() || shape->is_null() ? coco::Segmentation()
                                                                            : shape_of(*shape));
}

}  // namespace

std::string sample_json(const Sample& sample, const std::vector<std::string>& classes) {
  auto annotations = OrderedJson::array();
  const auto& objects = sample.objects;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const double x = objects.boxes[i].x1, y = objects.boxes[i].y1;
    OrderedJson object = {{"bbox", {x, y, objects.boxes[i].x2 - x, objects.boxes[i].y2 - y}},
                          {"category", classes.at(static_cast<std::size_t>(objects.classes[i]))},
                          {"iscrowd", objects.crowd[i]}};
    if (!std::holds_alternative<std::monostate>(objects.segmentations[i]))
      object["segmentation"] = json_of(objects.segmentations[i]);
    annotations.push_back(std::move(object));
  }
  return OrderedJson{{"image_id", sample.image_id},
                     {"file_name", std::filesystem::path(sample.path).filename().string()},
                     {"width", sample.width},
                     {"height", sample.height},
                     {"annotations", std::move(annotations)}}
      .dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Sample read_sample_json(std::string_view text, const std::string& where, ClassNames& classes) {
  try {
    const auto json = Json::parse(text);
    Sample sample;
    sample.image_id = json.value("image_id", std::int64_t{0});
    sample.path = json.value("file_name", std::string());
    sample.width = json.value("width", 0);
    sample.height = json.value("height", 0);
    if (const auto objects = json.find("annotations"); objects != json.end())
      for (const auto& object : *objects) add_object(object, classes, sample.objects);
    return sample;
  } catch (const nlohmann::json::exception& problem) {
    throw DataError(where, std::string("cannot read these annotations: ") + problem.what());
  } catch (const Error& problem) {
    throw DataError(where, problem.what());
  }
}

}  // namespace millrace
