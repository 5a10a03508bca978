#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/tools/formats/faults.h"
#include "millrace/tools/formats/files/image_finder.h"
#include "millrace/tools/formats/files/labelme_file.h"
#include "millrace/tools/formats/files/texts.h"
#include "millrace/tools/formats/set_builder.h"

namespace millrace::formats {
namespace {

constexpr coco::FindingKind kPointsDropped{
    "label-no-area", coco::Severity::warning, "shapes without area, such as points and lines",
    "they are skipped; supported shapes are polygon, rectangle, circle and mask"};

std::vector<RelativePath> json_files(const Listing& folder) {
  auto files = folder.all_files(".json");
  std::ranges::sort(files);
  return files;
}

/// Returns true if a file begins with keys of LabelMe.
bool begins_as_labelme(const std::filesystem::path& file) {
  const auto head = beginning_of(file, 16384);
  return head.find("\"shapes\"") != head.npos || head.find("\"imageData\"") != head.npos;
}

class LabelMeReader {
 public:
  LabelMeReader(const Listing& folder, coco::Findings& findings)
      : folder_(folder), images_(folder), builder_(folder, findings) {
    builder_.sort_categories();
  }

  void read(const RelativePath& label) {
    LabelMeFile file;
    try {
      file = parse_labelme(read_file(folder_.path(label)), label);
    } catch (const Error& problem) {
      builder_.report(kFileUnreadable, "", 0, problem.what());
      if (const auto image = images_.by_stem(stem_of(label), label)) builder_.mark(*image);
      return;
    }
    auto image = images_.by_name(file.image_path, label);
    if (!image) image = images_.by_stem(stem_of(label), label);
    if (!image) {
      builder_.report(kLabelWithoutImage, label, 0,
                      fmt::format("its image is '{}'{}", file.image_path,
                                  file.has_image_data ? "; the copy in imageData is ignored" : ""));
      return;
    }
    const auto split = builder_.split(split_of_path(label), folder_of(*image));
    const auto open = builder_.add_image(split, *image, file.size, {label});
    if (!open) return;
    for (const auto& [index, line, why] : file.faults)
      builder_.report(kLabelUnreadable, label, line, fmt::format("shapes[{}]: {}", index, why));
    for (const auto& [index, line, type] : file.without_area)
      builder_.report(kPointsDropped, label, line, fmt::format("shapes[{}], a {}", index, type));
    for (auto& object : file.objects) {
      coco::Segmentation shape = std::move(object.polygons);
      if (object.mask) shape = placed_mask(object, open->size);
      const bool has_shape = object.mask || !std::get<std::vector<coco::Polygon>>(shape).empty();
      if (!has_shape) shape = std::monostate();
      const auto [x1, y1, x2, y2] = object.box;
      builder_.add(*open,
                   {.category = builder_.category(object.label),
                    .x1 = x1,
                    .y1 = y1,
                    .x2 = x2,
                    .y2 = y2,
                    .shape = std::move(shape),
                    .box_of_shape = has_shape},
                   {label, object.line});
    }
  }

  std::vector<Split> finish() && { return std::move(builder_).finish(images_); }

 private:
  /// Places a mask of LabelMe 5, a bitmap of the box, in its image.
  static coco::Rle placed_mask(const LabelMeObject& object, ImageSize size) {
    return coco::window(*object.mask, -std::lround(object.box[0]), -std::lround(object.box[1]),
                        static_cast<std::uint32_t>(size.height),
                        static_cast<std::uint32_t>(size.width));
  }

  const Listing& folder_;
  const ImageFinder images_;
  SetBuilder builder_;
};

}  // namespace

std::optional<std::string> detect_labelme(const Listing& folder) {
  constexpr std::size_t kMostLookedAt = 10;
  const auto files = json_files(folder);
  for (std::size_t i = 0; i < std::min(files.size(), kMostLookedAt); ++i)
    if (begins_as_labelme(folder.path(files[i])))
      return fmt::format("{}, and {} has \"shapes\"", counted(files.size(), "JSON file"), files[i]);
  return {};
}

std::vector<Split> read_labelme(const Listing& folder, coco::Findings& findings) {
  LabelMeReader reader(folder, findings);
  for (const auto& file : json_files(folder))
    if (begins_as_labelme(folder.path(file))) reader.read(file);
  return std::move(reader).finish();
}

}  // namespace millrace::formats
