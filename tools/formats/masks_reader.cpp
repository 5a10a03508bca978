#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/tools/formats/faults.h"
#include "millrace/tools/formats/files/mask_files.h"
#include "millrace/tools/formats/files/png_masks.h"
#include "millrace/tools/formats/files/texts.h"
#include "millrace/tools/formats/set_builder.h"

namespace millrace::formats {
namespace {

constexpr std::size_t kMostColours = 4096;  // an image with more is a photo or a smoothed mask

/// Cityscapes' classes with instances, from class 24 on.
constexpr std::array<std::string_view, 10> kCityscapes = {
    "person",  "rider",   "car",   "truck",      "bus",
    "caravan", "trailer", "train", "motorcycle", "bicycle"};
constexpr std::uint32_t kFirstCity = 24, kCityFactor = 1000;

/// A mask file, decoded.
struct ReadMask {
  RelativePath place;
  ImageSize size;
  std::map<std::uint32_t, coco::Rle> values;
  std::string fault;  // reason why the mask is unusable; empty = none
};

ReadMask read_mask(const Listing& folder, const RelativePath& place) {
  ReadMask mask{.place = place};
  try {
    const auto picture = read_png_values(folder.path(place));
    mask.size = picture.size();
    if (auto values = masks_of_values(picture, picture.coloured ? kMostColours : 65536))
      mask.values = *std::move(values);
    else
      mask.fault =
          fmt::format("has more than {} colors; a mask has one color per object", kMostColours);
  } catch (const Error& problem) {
    mask.fault = problem.what();
    const auto name = folder.path(place).string() + ": ";
    if (mask.fault.starts_with(name)) mask.fault.erase(0, name.size());
  }
  return mask;
}

/// The class of one value of one mask in instances.csv.
struct NamedValue {
  std::string category;
  bool crowd = false;
};

using NamedValues = std::map<std::pair<RelativePath, std::uint32_t>, NamedValue>;

NamedValues named_values(const Listing& folder, coco::Findings& findings) {
  NamedValues named;
  constexpr const char* kFile = "instances.csv";
  if (!folder.has_file(kFile)) return named;
  const auto rows = csv_rows(read_file(folder.path(kFile)));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& fields = rows[i].fields;
    const auto value = fields.size() >= 3 ? integer_in(fields[1]) : std::nullopt;
    if (!value || *value < 0 || *value > UINT32_MAX || fields[2].empty())
      add_finding(findings, kLabelUnreadable, kFile, rows[i].line, "not a row of mask,value,class");
    else
      named[{fields[0], static_cast<std::uint32_t>(*value)}] = {
          fields[2], fields.size() > 3 && fields[3] == "1"};
  }
  return named;
}

coco::Rle joined_mask(const std::map<std::uint32_t, coco::Rle>& values) {
  std::vector<coco::Rle> all;
  for (const auto& [value, mask] : values) all.push_back(mask);
  return coco::merge(all);
}

/// Returns "Maine_Coon" for "Maine_Coon_12".
std::string breed_of(const RelativePath& image) {
  auto name = stem_of(image);
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0)
    name.pop_back();
  while (name.ends_with('_')) name.pop_back();
  return name.empty() ? "object" : name;
}

class MasksReader {
 public:
  MasksReader(const Listing& folder, coco::Findings& findings)
      : folder_(folder),
        files_(find_masks(folder)),
        named_(named_values(folder, findings)),
        builder_(folder, findings) {
    if (folder.has_file("classes.txt")) classes_ = names_in(folder.path("classes.txt"));
    for (const auto& name : classes_) builder_.category(name);
    if (classes_.empty()) builder_.sort_categories();
  }

  std::vector<Split> read() && {
    for (const auto& place : files_.without_image) builder_.report(kLabelWithoutImage, place);
    for (const auto& image : files_.unmasked) builder_.report(kImageUnannotated, image);
    std::vector<const std::pair<const RelativePath, std::vector<RelativePath>>*> images;
    for (const auto& one : files_.masks) images.push_back(&one);
    std::vector<std::vector<ReadMask>> masks(images.size());
    tbb::parallel_for(std::size_t{0}, images.size(), [&](std::size_t i) {
      for (const auto& place : images[i]->second) masks[i].push_back(read_mask(folder_, place));
    });
    is_binary_ = has_one_value(masks);
    for (std::size_t i = 0; i < images.size(); ++i) add_image(images[i]->first, masks[i]);
    return std::move(builder_).finish();
  }

 private:
  static bool has_one_value(const std::vector<std::vector<ReadMask>>& masks) {
    std::set<std::uint32_t> values;
    for (const auto& of_image : masks)
      for (const auto& mask : of_image)
        for (const auto& [value, where] : mask.values) {
          values.insert(value);
          if (values.size() > 1) return false;
        }
    return true;
  }

  void add_image(const RelativePath& image, std::vector<ReadMask>& masks) {
    auto name = split_of_path(image);
    if (name == kWhole && !masks.empty()) name = split_of_path(masks[0].place);
    const bool has_cities = files_.kind == MaskKind::cityscapes;
    const auto split =
        builder_.split(name, has_cities ? folder_of(folder_of(image)) : folder_of(image));
    for (const auto& mask : masks)  // unknown objects would be learned as background
      if (!mask.fault.empty() && files_.kind != MaskKind::objects) {
        builder_.report(kFileUnreadable, mask.place, 0, mask.fault);
        return;
      }
    // The image's stored size or its size after EXIF rotation, depending on the mask.
    std::optional<ImageSize> size;
    if (!masks.empty() && masks[0].fault.empty()) size = masks[0].size;
    const auto open =
        builder_.add_image(split, image, size,
                           {masks.empty() ? std::string_view() : std::string_view(masks[0].place)});
    if (!open) return;
    for (auto& mask : masks) {
      if (mask.fault.empty() && mask.size != open->size)
        mask.fault = fmt::format("{} x {} pixels, but its image is {} x {}", mask.size.width,
                                 mask.size.height, open->size.width, open->size.height);
      if (mask.fault.empty())
        add_objects(*open, image, mask);
      else
        builder_.report(kMaskUnreadable, mask.place, 0, mask.fault);
    }
  }

  void add_objects(const OpenImage& open, const RelativePath& image, ReadMask& mask) {
    const auto usual = classes_.size() == 1 ? classes_[0] : std::string("object");
    switch (files_.kind) {
      case MaskKind::objects: {
        if (mask.values.empty()) {
          builder_.report(kMaskUnreadable, mask.place, 0, "the mask is empty");
          return;
        }
        const auto named = named_.find({mask.place, 0});
        const auto known = named == named_.end() ? NamedValue{usual} : named->second;
        add(open, known.category, joined_mask(mask.values), mask.place, known.crowd);
        return;
      }
      case MaskKind::trimaps:
        if (const auto found = mask.values.find(1); found != mask.values.end())
          add(open, classes_.empty() ? breed_of(image) : usual, found->second, mask.place, false);
        return;
      case MaskKind::cityscapes:
        for (const auto& [value, where] : mask.values) {
          const auto number = value < kCityFactor ? value : value / kCityFactor;
          if (number >= kFirstCity && number < kFirstCity + kCityscapes.size())
            add(open, std::string(kCityscapes[number - kFirstCity]), where, mask.place,
                /*crowd=*/value < kCityFactor);
        }
        return;
      case MaskKind::voc:
        mask.values.erase(255);  // borders
        break;
      case MaskKind::instances:
        break;
    }
    const bool are_classes = named_.empty() && classes_.size() > 1;
    for (const auto& [value, where] : mask.values) {
      const auto named = named_.find({mask.place, value});
      if (named != named_.end()) {
        add(open, named->second.category, where, mask.place, named->second.crowd);
      } else if (!named_.empty() || (are_classes && value > classes_.size())) {
        builder_.report(kClassUnknown, mask.place, 0,
                        named_.empty() ? fmt::format("value {}, but classes.txt has {} classes",
                                                     value, classes_.size())
                                       : fmt::format("value {} is not in instances.csv", value));
      } else if (are_classes || is_binary_) {
        for (auto& part : connected_parts(where))
          add(open, are_classes ? classes_[value - 1] : usual, std::move(part), mask.place, false);
      } else {
        add(open, usual, where, mask.place, false);
      }
    }
  }

  void add(const OpenImage& image, const std::string& category, coco::Rle mask,
           const RelativePath& place, bool crowd) {
    builder_.add(image,
                 {.category = builder_.category(category),
                  .shape = std::move(mask),
                  .box_of_shape = true,
                  .crowd = crowd},
                 {place});
  }

  const Listing& folder_;
  const MaskFiles files_;
  const NamedValues named_;
  std::vector<std::string> classes_;
  bool is_binary_ = false;  // true if all masks have one value, whose components are objects
  SetBuilder builder_;
};

}  // namespace

std::optional<std::string> detect_masks(const Listing& folder) {
  const auto places = mask_places(folder);
  if (places.empty()) return {};
  const auto files = find_masks(folder);
  if (files.masks.empty() || (files.kind == MaskKind::voc && detect_voc(folder))) return {};
  return fmt::format("{} in mask folders, such as {}", counted(places.size(), "PNG file"),
                     places[0]);
}

std::vector<Split> read_masks(const Listing& folder, coco::Findings& findings) {
  return MasksReader(folder, findings).read();
}

}  // namespace millrace::formats
