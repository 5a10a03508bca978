#include "millrace/dataflow/detection/batch_pictures.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/detection/geometry.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const coco::Segmentation& shape) {
  if (const auto* mask = std::get_if<coco::Rle>(&shape))
    return {{"size", {mask->height, mask->width}}, {"counts", coco::encode_counts(*mask)}};
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) return *polygons;
  return nullptr;
}

Json json_of(const Instances& objects, std::span<const std::string> classes) {
  Json list = Json::array();
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& box = objects.boxes[i];
    list.push_back({{"class", class_name(classes, objects.classes[i])},
                    {"box", {box.x1, box.y1, box.x2, box.y2}},
                    {"crowd", objects.crowd[i] != 0},
                    {"segmentation", json_of(objects.segmentations[i])}});
  }
  return list;
}

}  // namespace

std::string class_name(std::span<const std::string> classes, std::int32_t number) {
  const auto k = static_cast<std::size_t>(number);
  return k < classes.size() ? classes[k] : std::to_string(number);
}

cv::Mat batch_picture(const Batch& batch, std::size_t index, std::span<const std::string> classes) {
  const auto& image = batch.images[index];
  const auto& objects = batch.objects[index];
  std::vector<coco::Overlay> overlays;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto label = static_cast<std::size_t>(objects.classes[i]);
    while (names.size() <= label)
      names.push_back(class_name(classes, static_cast<std::int32_t>(names.size())));
    overlays.push_back({.box = objects.boxes[i],
                        .label = objects.classes[i],
                        .crowd = objects.crowd[i] != 0,
                        .mask = rasterised(objects.segmentations[i], {image.width, image.height})});
  }
  return coco::draw_objects(batch.image(index), overlays, names);
}

void write_batch(const std::filesystem::path& folder, const std::string& name, const Batch& batch,
                 std::span<const std::string> classes) {
  Json images = Json::array();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto picture = fmt::format("{}-{}.png", name, i);
    coco::write_picture(folder / picture, batch_picture(batch, i, classes));
    const auto& image = batch.images[i];
    images.push_back({{"picture", picture},
                      {"image_id", image.image_id},
                      {"original_size", {image.original_width, image.original_height}},
                      {"size", {image.width, image.height}},
                      {"scale", {image.scale_x, image.scale_y}},
                      {"objects", json_of(batch.objects[i], classes)}});
  }
  const Json all = {
      {"width", batch.width}, {"height", batch.height}, {"images", std::move(images)}};
  write_file_atomically(folder / (name + ".json"), all.dump(1) + "\n");
}

}  // namespace millrace
