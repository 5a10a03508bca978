// Stages that show samples and batches: "print" in the log, "dump" as pictures.
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/options.h"
#include "millrace/base/text.h"
#include "millrace/coco/drawing/draw.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/geometry.h"

namespace millrace {
namespace {

struct PrintOptions {
  std::int64_t count = 10;
  void describe(Options& o) {
    o.add("count", count, "maximum number of images", {.min = 1, .unit = "images"});
  }
};

/// Returns classes[number], or the number as text if there is no such name.
std::string class_name(std::span<const std::string> classes, std::int32_t number) {
  const auto k = static_cast<std::size_t>(number);
  return k < classes.size() ? classes[k] : std::to_string(number);
}

/// Returns e.g. "image 42 (photos/a.jpg), 640 x 480, now 320 x 240: 2 cat, 1 dog".
std::string line(const Sample& sample, const std::vector<std::string>& classes) {
  auto text = fmt::format("image {} ({}), {} x {}", sample.image_id, sample.path, sample.width,
                          sample.height);
  if (!sample.image.empty())
    text += fmt::format(", now {} x {}", sample.image.size().width, sample.image.size().height);
  std::map<std::int32_t, int> counts;
  for (const auto label : sample.objects.classes) ++counts[label];
  std::vector<std::string> parts;
  for (const auto& [label, count] : counts)
    parts.push_back(fmt::format("{} {}", count, class_name(classes, label)));
  return text + ": " + (parts.empty() ? "no objects" : joined(parts));
}

MILLRACE_REGISTER(detection_stages().add<PrintOptions>(
    "print", "logs the first images that pass",
    {[](const Config& table, const DetectionContext& context) {
      const auto left = std::make_shared<std::atomic<std::int64_t>>(
          read_options<PrintOptions>(table, {"type"}).count);
      return watch_stage<Sample>("print", [left, classes = context.classes](const Sample& sample) {
        if (left->fetch_sub(1, std::memory_order_relaxed) > 0)
          log_info("{}", line(sample, classes));
      });
    }}));

/// Draws image `index` of a batch without padding, with boxes and masks. (H, W, 3) 8-bit RGB.
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

/// Writes the picture of each image as `<name>-<place>.png` and the rest of the batch as
/// `<name>.json`: sizes, scales, and each object's box, class, crowd flag and shape in COCO's
/// format. Throws Error with the file.
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

struct DumpOptions {
  std::string folder;
  std::int64_t count = 10;
  std::int64_t every = 1;

  void describe(Options& o) {
    o.add("folder", folder, "output folder of the pictures; created if missing");
    o.add("count", count, "maximum number of training batches", {.min = 1});
    o.add("every", every, "write one batch in this many", {.min = 1});
  }

  void check(const Config& table) const {
    require(table, "folder", !folder.empty(), "is required: the output folder of the pictures");
  }
};

/// Makes the stage "dump". Files are named by the batch's number in the training, so that a resumed
/// training writes the same files, and by its rank if there are several.
Stage dumping(const Config& table, const DetectionContext& context) {
  const auto options = read_options<DumpOptions>(table, {"type"});
  try {
    if (!context.only_checked) make_writable_folder(options.folder);
  } catch (const Error& problem) {
    throw ConfigError(fmt::format("{}: dump: {}", table.origin.text(), problem.what()));
  }
  return watch_stage<Batch>(
      "dump", [=, classes = context.classes](const Batch& batch, const GroupPlace& place) {
        const auto [number, rank, ranks] = place;
        if (number % options.every != 0 || number / options.every >= options.count) return;
        const auto name = fmt::format("batch{:06}", number);
        write_batch(options.folder, ranks > 1 ? fmt::format("{}-rank{}", name, rank) : name, batch,
                    classes);
      });
}

MILLRACE_REGISTER(detection_stages().add<DumpOptions>(
    "dump", "writes batches as pictures with boxes and masks, and their other data as JSON",
    {dumping}));

}  // namespace
}  // namespace millrace
