#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/tools/formats/all_formats.h"
#include "millrace/tools/formats/files/texts.h"
#include "millrace/tools/formats/writers/losses.h"
#include "millrace/tools/formats/writers/value_picture.h"
#include "millrace/tools/formats/writers/writing.h"

namespace millrace::formats {
namespace {

constexpr std::size_t kMostValues = 65535;  // of a 16-bit PNG

/// Writes images/, masks/, instances.csv and classes.txt.
class MasksWriter {
 public:
  MasksWriter(std::span<const Split> splits, const std::filesystem::path& out,
              coco::Findings& findings)
      : classes_(splits), out_(out), findings_(findings) {}

  /// Calls `write_image(data, image, masks)` for each image; `masks` is the place of its masks
  /// without extension.
  template <class WriteImage>
  void each_image(std::span<const Split> splits, const WriteImage& write_image) {
    for (const auto& [name, split] : named_splits(splits)) {
      const auto inner = name == kWhole ? Place() : name;
      UniqueStems stems;
      for (const auto& image : split->data->images) {
        const Place file(split->data->text(image.file_name));
        stems.add(file);
        place_file(split->images / file, out_ / "images" / inner / file);
        write_image(*split->data, image,
                    joined_place(joined_place("masks", inner), without_extension(file)));
      }
    }
  }

  /// False for an object without a shape; tells what else is lost.
  bool has_mask(const coco::Dataset& data, const coco::Image& image,
                const coco::Annotation& object) {
    if (object.shape.kind == coco::ShapeKind::none) {
      tell_lost(findings_, kBoxLost, data, image, object);
      return false;
    }
    tell_marks_lost(findings_, data, image, object);
    return true;
  }

  void add_row(const Place& mask, std::size_t value, const coco::Dataset& data,
               const coco::Annotation& object) {
    table_ += fmt::format("{},{},{},{}\n", csv_field(mask), value,
                          csv_field(classes_.name(data, object.category_id)), object.crowd ? 1 : 0);
  }

  void finish() const {
    write_new_file(out_ / "instances.csv", table_);
    std::string names;
    for (const auto& name : classes_.names()) names += name + "\n";
    write_new_file(out_ / "classes.txt", names);
  }

 private:
  const ClassList classes_;
  const std::filesystem::path& out_;
  coco::Findings& findings_;
  std::string table_ = "mask,value,class,crowd\n";
};

}  // namespace

void write_masks(std::span<const Split> splits, const std::filesystem::path& out,
                 coco::Findings& findings) {
  MasksWriter writer(splits, out, findings);
  writer.each_image(
      splits, [&](const coco::Dataset& data, const coco::Image& image, const Place& masks) {
        const auto objects = data.objects(image);
        if (objects.size() > kMostValues)
          throw Error(fmt::format("{}: {} objects; a PNG mask tells {} apart",
                                  data.text(image.file_name), objects.size(), kMostValues));
        const auto [picture, shown] = value_picture(data, image, /*with_crowds=*/true, findings);
        const auto place = masks + ".png";
        for (std::size_t k = 0; k < objects.size(); ++k) {
          if (!writer.has_mask(data, image, objects[k])) continue;
          if (shown[k])
            writer.add_row(place, k + 1, data, objects[k]);
          else
            tell_lost(findings, kObjectHidden, data, image, objects[k]);
        }
        write_new_file(out / place, png_of_values(picture));
      });
  writer.finish();
}

void write_object_masks(std::span<const Split> splits, const std::filesystem::path& out,
                        coco::Findings& findings) {
  MasksWriter writer(splits, out, findings);
  writer.each_image(splits,
                    [&](const coco::Dataset& data, const coco::Image& image, const Place& masks) {
                      const auto width = static_cast<std::uint32_t>(image.width),
                                 height = static_cast<std::uint32_t>(image.height);
                      std::size_t number = 0;
                      for (const auto& object : data.objects(image)) {
                        if (!writer.has_mask(data, image, object)) continue;
                        const auto mask = coco::mask_of(data.segmentation(object), height, width);
                        if (coco::area(mask) == 0) {
                          tell_lost(findings, kObjectHidden, data, image, object);
                          continue;
                        }
                        std::vector<std::uint8_t> bitmap(std::size_t{width} * height);
                        coco::decode(mask, bitmap.data());
                        PngValues picture{width, height};
                        for (const auto inside : bitmap)
                          picture.values.push_back(inside != 0 ? 255 : 0);
                        const auto place = fmt::format("{}/{:04}.png", masks, ++number);
                        writer.add_row(place, 0, data, object);
                        write_new_file(out / place, png_of_values(picture));
                      }
                      if (number == 0) std::filesystem::create_directories(out / masks);
                    });
  writer.finish();
}

}  // namespace millrace::formats
