#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>
#include <string>

#include "millrace/tools/formats/all_formats.h"
#include "millrace/tools/formats/writers/losses.h"
#include "millrace/tools/formats/writers/value_picture.h"
#include "millrace/tools/formats/writers/writing.h"

namespace millrace::formats {
namespace {

constexpr int kPixelDecimals = 6;
constexpr std::size_t kMostVocObjects = 254;  // 255 is none

void add_text(pugi::xml_node parent, const char* name, const std::string& text) {
  parent.append_child(name).text().set(text.c_str());
}

class VocWriter {
 public:
  VocWriter(std::span<const Split> splits, const std::filesystem::path& out,
            coco::Findings& findings)
      : classes_(splits), out_(out), findings_(findings) {
    auto sorted = classes_.names();
    std::ranges::sort(sorted);
    for (const auto& name : classes_.names())
      values_.push_back(
          static_cast<std::uint32_t>(std::ranges::find(sorted, name) - sorted.begin()) + 1);
    labels_ = "# label:color_rgb:parts:actions\nbackground:0,0,0::\n";
    for (std::size_t k = 0; k < sorted.size() && k < kMostVocObjects; ++k)
      labels_ += fmt::format("{}:{},{},{}::\n", sorted[k], palette_[3 * k + 3], palette_[3 * k + 4],
                             palette_[3 * k + 5]);
  }

  /// The annotation of an image, and its masks if it has any. Returns whether it has.
  bool write(const coco::Dataset& data, const coco::Image& image) {
    const Place file(data.text(image.file_name));
    const bool has_masks = write_masks_of(data, image, without_extension(file));
    pugi::xml_document document;
    auto root = document.append_child("annotation");
    add_text(root, "folder", "JPEGImages");
    add_text(root, "filename", file.substr(file.rfind('/') + 1));
    auto source = root.append_child("source");
    add_text(source, "database", "Unknown");
    auto size = root.append_child("size");
    add_text(size, "width", fmt::format("{}", image.width));
    add_text(size, "height", fmt::format("{}", image.height));
    add_text(size, "depth", "3");
    add_text(root, "segmented", has_masks ? "1" : "0");
    for (const auto& object : data.objects(image))
      if (!object.crowd) add_object(root, data, object);
    std::ostringstream text;
    document.save(text, "  ", pugi::format_default | pugi::format_no_declaration);
    write_new_file(out_ / "Annotations" / (without_extension(file) + ".xml"), text.str());
    return has_masks;
  }

  const std::string& labels() const { return labels_; }

 private:
  void add_object(pugi::xml_node root, const coco::Dataset& data,
                  const coco::Annotation& object) const {
    auto node = root.append_child("object");
    add_text(node, "name", classes_.name(data, object.category_id));
    add_text(node, "pose", "Unspecified");
    add_text(node, "truncated", "0");
    add_text(node, "difficult", object.ignored ? "1" : "0");
    auto box = node.append_child("bndbox");
    const auto [x, y, width, height] = object.bbox;
    // Numbers of pixels that belong to the object, counted from 1.
    add_text(box, "xmin", decimal_text(x + 1, kPixelDecimals));
    add_text(box, "ymin", decimal_text(y + 1, kPixelDecimals));
    add_text(box, "xmax", decimal_text(x + width, kPixelDecimals));
    add_text(box, "ymax", decimal_text(y + height, kPixelDecimals));
  }

  /// SegmentationObject: value k is the k-th object of the XML file. Tells what is lost.
  bool write_masks_of(const coco::Dataset& data, const coco::Image& image, const Place& name) {
    const auto objects = data.objects(image);
    bool has_shapes = false;
    for (const auto& object : objects) {
      if (object.crowd) tell_lost(findings_, kCrowdLost, data, image, object);
      if (object.crowd) continue;
      tell_marks_lost(findings_, data, image, object);
      has_shapes = has_shapes || object.shape.kind != coco::ShapeKind::none;
    }
    if (!has_shapes) return false;
    if (objects.size() > kMostVocObjects || values_.size() > kMostVocObjects) {
      findings_.add(kTooManyObjects, {.image = image.id, .file = name});
      return false;
    }
    auto [picture, shown] = value_picture(data, image, /*with_crowds=*/false, findings_);
    std::vector<std::uint32_t> position(objects.size() + 1), category(objects.size() + 1);
    std::uint32_t count = 0;
    for (std::size_t k = 0; k < objects.size(); ++k) {
      if (objects[k].crowd) continue;
      position[k + 1] = ++count;
      category[k + 1] = values_[classes_.position(data, objects[k].category_id)];
      if (!shown[k] && objects[k].shape.kind != coco::ShapeKind::none)
        tell_lost(findings_, kShapeLost, data, image, objects[k]);
    }
    auto classes = picture;
    for (auto& value : classes.values) value = category[value];
    for (auto& value : picture.values) value = position[value];
    write_new_file(out_ / "SegmentationObject" / (name + ".png"), png_of_values(picture, palette_));
    write_new_file(out_ / "SegmentationClass" / (name + ".png"), png_of_values(classes, palette_));
    return true;
  }

  const ClassList classes_;
  const std::filesystem::path& out_;
  coco::Findings& findings_;
  const std::vector<std::uint8_t> palette_ = voc_palette();
  std::vector<std::uint32_t> values_;  // in SegmentationClass, of each class
  std::string labels_;
};

}  // namespace

void write_voc(std::span<const Split> splits, const std::filesystem::path& out,
               coco::Findings& findings) {
  VocWriter writer(splits, out, findings);
  UniqueStems stems;  // of all splits, which share their folders
  for (const auto& [name, split] : named_splits(splits)) {
    std::string all, with_masks;
    for (const auto& image : split->data->images) {
      const Place file(split->data->text(image.file_name));
      stems.add(file);
      place_file(split->images / file, out / "JPEGImages" / file);
      all += without_extension(file) + "\n";
      if (writer.write(*split->data, image)) with_masks += without_extension(file) + "\n";
    }
    const auto list = (name == kWhole ? "default" : name) + ".txt";
    write_new_file(out / "ImageSets" / "Main" / list, all);
    if (!with_masks.empty()) write_new_file(out / "ImageSets" / "Segmentation" / list, with_masks);
  }
  write_new_file(out / "labelmap.txt", writer.labels());
}

}  // namespace millrace::formats
