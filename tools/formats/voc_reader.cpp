#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/tools/formats/faults.h"
#include "millrace/tools/formats/files/image_finder.h"
#include "millrace/tools/formats/files/png_masks.h"
#include "millrace/tools/formats/files/texts.h"
#include "millrace/tools/formats/files/voc_file.h"
#include "millrace/tools/formats/set_builder.h"

namespace millrace::formats {
namespace {

using coco::FindingKind;

constexpr FindingKind kDifficult{
    "label-difficult", coco::Severity::note, "objects marked difficult",
    "kept as ordinary objects, as in detectron2; Pascal VOC's evaluation ignores them"};
constexpr FindingKind kUnlisted{"label-unlisted", coco::Severity::note,
                                "labels that are in no list in ImageSets", "they are skipped"};

/// Returns true if a file begins like a VOC annotation file.
bool begins_as_voc(const std::filesystem::path& file) {
  return beginning_of(file, 4096).find("<annotation") != std::string::npos;
}

std::vector<RelativePath> xml_files(const Listing& folder) {
  auto files = folder.all_files(".xml");
  std::ranges::sort(files);
  return files;
}

/// An entry of an image list in ImageSets.
struct ListedId {
  std::string id, split;
  RelativePath list;
  int line = 0;
};

/// Returns the entries of the lists of train, val and test; trainval is used only without train and
/// val. Lists of one class ("aeroplane_train", with a second column) are not splits.
std::vector<ListedId> listed_ids(const Listing& folder, const RelativePath& sets) {
  std::map<std::string, RelativePath> files;
  for (const auto& name : folder.files(sets, ".txt")) {
    const auto split = split_name(stem_of(name));
    files.try_emplace(split ? *split : lower_case(stem_of(name)), joined_path(sets, name));
  }
  std::vector<std::pair<std::string, RelativePath>> wanted;
  for (const auto* name : {"train", "val", "test"})
    if (files.contains(name)) wanted.emplace_back(name, files[name]);
  if (!files.contains("train") && !files.contains("val") && files.contains("trainval"))
    wanted.emplace_back("train", files["trainval"]);
  if (wanted.empty() && files.contains("default")) wanted.emplace_back(kWhole, files["default"]);
  std::vector<ListedId> ids;
  for (const auto& [split, list] : wanted) {
    const auto text = read_file(folder.path(list));
    for (const auto& [number, line] : lines_of(text))
      ids.push_back({std::string(words_of(line)[0]), split, list, number});
  }
  return ids;
}

std::vector<ListedId> listed_ids(const Listing& folder) {
  const auto sets = folder.find_folder("ImageSets");
  if (!sets) return {};
  for (const auto* name : {"Main", "Segmentation", "Layout", ""})
    if (auto ids = listed_ids(folder, joined_path(*sets, name)); !ids.empty()) return ids;
  return {};
}

/// Converts 1-based inclusive pixel coordinates to the interval that covers the pixels; the order
/// of swapped coordinates is kept.
std::pair<double, double> side_of(double first, double last) {
  return last < first - 1 ? std::pair(first, last - 1) : std::pair(first - 1, last);
}

/// Returns the intersection area of an object's box and another box.
double shared_area(const VocObject& object, const Box& box) {
  const double width =
                   std::min<double>(object.x2, box.x2) - std::max<double>(object.x1 - 1, box.x1),
               height =
                   std::min<double>(object.y2, box.y2) - std::max<double>(object.y1 - 1, box.y1);
  return width <= 0 || height <= 0 ? 0 : width * height;
}

/// Returns the fraction of a mask's box that is inside an object's box.
double share_inside(const VocObject& object, const coco::Rle& mask) {
  const Box box = coco::bounding_box(mask);
  const double shared = shared_area(object, box);
  return shared > 0 ? shared / double{box.area()} : 0;
}

double overlap(const VocObject& object, const coco::Rle& mask) {
  const Box box = coco::bounding_box(mask);
  const double shared = shared_area(object, box);
  if (shared <= 0) return 0;
  const double area = (object.x2 - (object.x1 - 1)) * (object.y2 - (object.y1 - 1));
  return shared / (area + double{box.area()} - shared);
}

class VocReader {
 public:
  VocReader(const Listing& folder, coco::Findings& findings)
      : folder_(folder),
        images_(folder, {"segmentationclass", "segmentationobject", "masks", "trimaps",
                         "segmentationclassraw"}),
        builder_(folder, findings),
        masks_(folder.find_folder("SegmentationObject")) {
    builder_.sort_categories();
  }

  void read_listed(const std::vector<ListedId>& ids, const std::vector<RelativePath>& files) {
    std::map<std::string, RelativePath>
        by_name;  // "Annotations/x/a.xml" has the keys "a" and "x/a"
    for (const auto& file : files) {
      auto name = file.substr(0, file.size() - extension_of(file).size());
      for (;;) {
        by_name.emplace(name, file);
        const auto slash = name.find('/');
        if (slash == std::string::npos) break;
        name.erase(0, slash + 1);
      }
    }
    for (const auto& one : ids) {
      auto found = by_name.find(one.id);
      if (found == by_name.end()) found = by_name.find(stem_of(one.id));
      if (found != by_name.end()) {
        read(one.split, found->second);
        continue;
      }
      const auto image = images_.by_stem(one.id, one.list);
      if (image) builder_.mark(*image);
      builder_.report(image ? kImageUnannotated : kLabelWithoutImage, one.list, one.line,
                      image ? fmt::format("{}: no {}.xml", *image, one.id)
                            : fmt::format("neither an image nor a label '{}' found", one.id));
    }
    for (const auto& file : files)
      if (!read_.contains(file)) {
        builder_.report(kUnlisted, file);
        if (const auto image = images_.by_stem(stem_of(file), file)) builder_.mark(*image);
      }
  }

  void read(const std::string& split, const RelativePath& label) {
    if (!read_.insert(label).second) return;
    VocFile file;
    try {
      file = parse_voc(read_file(folder_.path(label)));
    } catch (const Error& problem) {
      builder_.report(kFileUnreadable, label, 0, problem.what());
      if (const auto image = images_.by_stem(stem_of(label), label)) builder_.mark(*image);
      return;
    }
    auto image = images_.by_stem(stem_of(label), label);
    if (!image && !file.file_name.empty()) image = images_.by_name(file.file_name, label);
    if (!image) {
      builder_.report(
          kLabelWithoutImage, label, 0,
          file.file_name.empty() ? "" : fmt::format("its image is '{}'", file.file_name));
      return;
    }
    const auto open =
        builder_.add_image(builder_.split(split, folder_of(*image)), *image, file.size, {label});
    if (!open) return;
    for (const auto& [line, why] : file.faults) builder_.report(kLabelUnreadable, label, line, why);
    const auto masks = masks_of(file, *open, label);
    for (std::size_t i = 0; i < file.objects.size(); ++i)
      add(*open, file.objects[i], masks.empty() ? coco::Rle() : masks[i], label);
  }

  std::vector<Split> finish() && { return std::move(builder_).finish(images_); }

 private:
  /// Adds an object; xmin, ymin, xmax, ymax are 1-based inclusive pixel coordinates.
  void add(const OpenImage& image, const VocObject& object, coco::Rle mask,
           const RelativePath& label) {
    if (object.difficult) builder_.report(kDifficult, label, object.line);
    ReadObject read{.category = builder_.category(object.name)};
    std::tie(read.x1, read.x2) = side_of(object.x1, object.x2);
    std::tie(read.y1, read.y2) = side_of(object.y1, object.y2);
    if (!mask.counts.empty())
      read.shape = std::move(mask);
    else if (!object.polygons.empty())
      read.shape = object.polygons;
    builder_.add(image, std::move(read), {label, object.line});
  }

  /// Returns the index of the object without a mask whose box fits a mask best; the number of masks
  /// if none fits.
  static std::size_t best_fitting(const VocFile& file, const std::vector<coco::Rle>& masks,
                                  const coco::Rle& mask) {
    constexpr double kLeastOverlap = 0.5;
    std::size_t best = masks.size();
    double most = kLeastOverlap;
    for (std::size_t i = 0; i < masks.size(); ++i) {
      if (!masks[i].counts.empty()) continue;
      if (const double shared = overlap(file.objects[i], mask); shared > most)
        best = i, most = shared;
    }
    return best;
  }

  /// Returns the mask of each object from SegmentationObject, empty for an object without one; an
  /// empty vector if the file does not exist. Value k is the mask of the k-th object if this fits
  /// all boxes, otherwise each mask goes to the best fitting box.
  std::vector<coco::Rle> masks_of(const VocFile& file, const OpenImage& image,
                                  const RelativePath& label) {
    if (!masks_) return {};
    // For example SegmentationObject/x/a.png for Annotations/x/a.xml.
    const auto below = label.substr(label.find('/') + 1);
    const auto place =
        joined_path(*masks_, below.substr(0, below.size() - extension_of(below).size()) + ".png");
    if (!folder_.has_file(place)) return {};
    std::vector<coco::Rle> masks(file.objects.size());
    constexpr std::uint32_t kVoid = 255;  // borders and regions that are not evaluated
    constexpr std::size_t kMostObjects = 65535;
    constexpr double kLeastInside = 0.5;
    try {
      const auto picture = read_png_values(folder_.path(place));
      if (picture.coloured)
        throw Error("not a palette image; objects are identified by palette index");
      if (picture.size() != image.size)
        throw Error(fmt::format("{} x {} pixels, but its image is {} x {}", picture.width,
                                picture.height, image.size.width, image.size.height));
      auto values = *masks_of_values(picture, kMostObjects);
      values.erase(kVoid);
      const bool are_in_order = std::ranges::all_of(values, [&](const auto& one) {
        return one.first <= masks.size() &&
               share_inside(file.objects[one.first - 1], one.second) >= kLeastInside;
      });
      for (auto& [value, mask] : values)
        if (const auto k = are_in_order ? value - 1 : best_fitting(file, masks, mask);
            k < masks.size())
          masks[k] = std::move(mask);
        else
          builder_.report(kMaskUnmatched, place, 0, fmt::format("value {}", value));
    } catch (const Error& problem) {
      builder_.report(kMaskUnreadable, place, 0, problem.what());
    }
    return masks;
  }

  const Listing& folder_;
  const ImageFinder images_;
  SetBuilder builder_;
  const std::optional<RelativePath> masks_;
  std::set<RelativePath> read_;  // labels that were read
};

}  // namespace

std::optional<std::string> detect_voc(const Listing& folder) {
  constexpr std::size_t kMostLookedAt = 10;
  const auto files = xml_files(folder);
  for (std::size_t i = 0; i < std::min(files.size(), kMostLookedAt); ++i)
    if (begins_as_voc(folder.path(files[i])))
      return fmt::format("{} with an <annotation>, such as {}", counted(files.size(), "XML file"),
                         files[i]);
  return {};
}

std::vector<Split> read_voc(const Listing& folder, coco::Findings& findings) {
  std::vector<RelativePath> files;
  for (auto& file : xml_files(folder))
    if (begins_as_voc(folder.path(file))) files.push_back(std::move(file));
  VocReader reader(folder, findings);
  if (const auto ids = listed_ids(folder); !ids.empty())
    reader.read_listed(ids, files);
  else
    for (const auto& file : files) reader.read(split_of_path(file), file);
  return std::move(reader).finish();
}

}  // namespace millrace::formats
