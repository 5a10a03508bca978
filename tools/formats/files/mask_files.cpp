#include "millrace/tools/formats/files/mask_files.h"

#include <algorithm>
#include <optional>
#include <ranges>

namespace millrace::formats {
namespace {

/// Returns the lower-case names of folders that contain masks.
const std::set<std::string>& folders_of_masks() {
  static const std::set<std::string> names = {
      "masks",  "mask",     "pedmasks",           "instance_masks", "instances", "trimaps",
      "gtfine", "gtcoarse", "segmentationobject", "instance",       "gt_masks"};
  return names;
}

/// Returns the name of the nearest mask folder above a file; empty if not found.
std::string mask_folder_of(const RelativePath& place) {
  for (auto folder = folder_of(place); !folder.empty(); folder = folder_of(folder)) {
    const auto name = lower_case(name_of(folder));
    if (folders_of_masks().contains(name)) return name;
  }
  return "";
}

/// Returns the image of a mask with a similar name.
std::optional<RelativePath> image_by_name(const ImageFinder& images, const RelativePath& mask) {
  const auto stem = stem_of(mask);
  if (auto image = images.by_stem(stem, mask)) return image;
  for (const std::string_view ending :
       {"_mask", "-mask", "_gtFine_instanceIds", "_gtCoarse_instanceIds", "_instanceIds",
        "_instances", "_instance", "_seg", "_masks"}) {
    if (!stem.ends_with(ending)) continue;
    const auto bare = stem.substr(0, stem.size() - ending.size());
    if (auto image = images.by_stem(bare, mask)) return image;
    if (auto image = images.by_stem(bare + "_leftImg8bit", mask)) return image;
  }
  return {};
}

/// Returns the image of a mask of one object, in masks/NAME/x.png or NAME/masks/x.png.
std::optional<RelativePath> image_by_folder(const ImageFinder& images, const RelativePath& mask) {
  const auto folder = folder_of(mask), above = folder_of(folder);
  if (!folders_of_masks().contains(lower_case(name_of(folder))))
    return images.by_stem(name_of(folder), mask);
  return above.empty() ? std::nullopt : images.by_stem(name_of(above), mask);
}

}  // namespace

std::vector<RelativePath> mask_places(const Listing& folder) {
  std::vector<RelativePath> places;
  for (const auto& place : folder.images_below(""))
    if (extension_of(place) == ".png" && !mask_folder_of(place).empty()) places.push_back(place);
  const auto keep_only = [&](const auto& wanted) {
    if (std::ranges::any_of(places, wanted))
      std::erase_if(places, [&](const RelativePath& place) { return !wanted(place); });
  };
  keep_only([](const RelativePath& place) { return stem_of(place).ends_with("_instanceIds"); });
  keep_only(
      [](const RelativePath& place) { return mask_folder_of(place) == "segmentationobject"; });
  return places;
}

MaskFiles find_masks(const Listing& folder) {
  auto others = folders_of_masks();
  others.insert("segmentationclass");  // masks of classes without objects
  const ImageFinder images(folder, others);
  const auto places = mask_places(folder);
  std::vector<std::optional<RelativePath>> by_name, by_folder;
  for (const auto& place : places) {
    by_name.push_back(image_by_name(images, place));
    by_folder.push_back(image_by_folder(images, place));
  }
  const auto found = [](const auto& all) {
    return std::ranges::count_if(all, [](const auto& one) { return one.has_value(); });
  };
  MaskFiles files;
  const bool are_objects = found(by_folder) > 0 && found(by_folder) >= found(by_name);
  const auto& chosen = are_objects ? by_folder : by_name;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (chosen[i])
      files.masks[*chosen[i]].push_back(places[i]);
    else
      files.without_image.push_back(places[i]);
  if (are_objects)  // an empty folder means that the image has no objects
    for (const auto& place : folder.folders())
      if (!mask_folder_of(place).empty())
        if (const auto image = images.by_stem(name_of(place), place))
          files.masks.try_emplace(*image);
  const auto masked = files.masks | std::views::keys;
  files.unmasked = images.others_beside({masked.begin(), masked.end()});
  const auto kind_of = [&](const RelativePath& place) {
    if (are_objects) return MaskKind::objects;
    if (stem_of(place).ends_with("_instanceIds")) return MaskKind::cityscapes;
    const auto name = mask_folder_of(place);
    if (name == "trimaps") return MaskKind::trimaps;
    return name == "segmentationobject" ? MaskKind::voc : MaskKind::instances;
  };
  if (!places.empty()) files.kind = kind_of(places[0]);
  return files;
}

}  // namespace millrace::formats
