#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"
#include "millrace/tools/formats/faults.h"
#include "millrace/tools/formats/files/texts.h"
#include "millrace/tools/formats/files/yolo_data.h"
#include "millrace/tools/formats/files/yolo_labels.h"
#include "millrace/tools/formats/set_builder.h"

namespace millrace::formats {
namespace {

constexpr coco::FindingKind kNamesMissing{
    "class-names-missing", coco::Severity::warning, "YOLO folders without class names",
    "classes are named 'class 0', 'class 1', ...; add their names to classes.txt or data.yaml"};

/// Returns the label file of an image: the last folder `images` becomes `labels`, as in
/// ultralytics; without such a folder, the label is in the image's folder.
RelativePath label_place(const RelativePath& image) {
  constexpr std::string_view kFrom = "/images/", kTo = "/labels/";
  auto place = "/" + image;
  if (const auto found = place.rfind(kFrom); found != RelativePath::npos)
    place.replace(found, kFrom.size(), kTo);
  return place.substr(1, place.rfind('.') - 1) + ".txt";
}

bool is_list_of_names(std::string_view name) {
  for (const auto* known : {"classes.txt", "names.txt", "labels.txt", "train.txt", "val.txt",
                            "valid.txt", "test.txt", "notes.txt"})
    if (name == known) return true;
  return lower_case(name).starts_with("readme");
}

struct YoloSplit {
  std::string name;
  RelativePath images;              // folder that file names are relative to
  std::vector<RelativePath> files;  // image files
};

/// Returns the images of a list with one path per line, relative to the list or to the root.
std::vector<RelativePath> listed_images(const Listing& folder, const RelativePath& list,
                                        coco::Findings& findings) {
  std::vector<RelativePath> files;
  const auto text = read_file(folder.path(list));
  const auto beside = std::filesystem::path(list).parent_path();
  for (const auto& [number, line] : lines_of(text)) {
    const std::filesystem::path wanted{std::string(line)};
    RelativePath found;
    for (auto path :
         {beside / wanted, wanted, wanted.parent_path().filename() / wanted.filename()}) {
      if (path.is_absolute())
        path = path.lexically_relative(std::filesystem::absolute(folder.root()));
      const auto place = path.lexically_normal().generic_string();
      if (found.empty() && folder.has_file(place)) found = place;
    }
    if (found.empty())
      add_finding(findings, kLabelWithoutImage, list, number, std::string(line));
    else
      files.push_back(found);
  }
  return files;
}

YoloSplit declared_split(const Listing& folder, const std::string& name,
                         const std::vector<RelativePath>& places, coco::Findings& findings) {
  YoloSplit split{name, {}, {}};
  for (const auto& place : places) {
    auto files = folder.has_folder(place)        ? folder.images_below(place)
                 : extension_of(place) == ".txt" ? listed_images(folder, place, findings)
                                                 : std::vector<RelativePath>{place};
    split.files.insert(split.files.end(), files.begin(), files.end());
  }
  const bool is_folder = places.size() == 1 && folder.has_folder(places[0]);
  if (is_folder)
    split.images = places[0];
  else if (!split.files.empty())
    split.images = folder_of(split.files[0]);
  return split;
}

/// Returns the splits named by folders (images/train, train/images, train, obj_train_data),
/// otherwise a single one.
std::vector<YoloSplit> found_splits(const Listing& folder) {
  std::vector<YoloSplit> splits;
  const auto add = [&](const std::string& name, const RelativePath& place) {
    splits.push_back({name, place, folder.images_below(place)});
  };
  for (const RelativePath parent : {"images", ""})
    for (const auto& name : folder.folders(parent)) {
      auto known = split_name(name);
      if (!known && name.starts_with("obj_") && name.ends_with("_data"))
        known = split_name(name.substr(4, name.size() - 9));
      if (!known) continue;
      const auto place = joined_path(parent, name), inner = place + "/images";
      add(*known, folder.has_folder(inner) ? inner : place);
    }
  std::erase_if(splits, [](const auto& one) { return one.files.empty(); });
  if (splits.empty()) add(kWhole, folder.has_folder("images") ? "images" : "");
  return splits;
}

std::vector<YoloSplit> splits_of(const Listing& folder, const YoloData& data,
                                 coco::Findings& findings) {
  std::vector<YoloSplit> splits;
  for (const auto& [name, places] : data.splits)
    if (!places.empty()) splits.push_back(declared_split(folder, name, places, findings));
  if (splits.empty()) splits = found_splits(folder);
  const auto rank = [](const YoloSplit& one) {
    return one.name == "train" ? 0 : one.name == "val" ? 1 : 2;
  };
  std::ranges::stable_sort(splits, {}, rank);
  return splits;
}

/// Reads the labels of a folder's images.
class YoloReader {
 public:
  YoloReader(const Listing& folder, YoloData data, coco::Findings& findings)
      : folder_(folder), data_(std::move(data)), builder_(folder, findings) {
    for (const auto& name : data_.names) builder_.category(name);
    if (builder_.category_count() < data_.names.size())
      throw Error(
          fmt::format("{}: two classes have the same name", folder.path(data_.file).string()));
  }

  void read(const YoloSplit& split) {
    if (std::ranges::none_of(split.files, [&](const RelativePath& image) {
          return folder_.has_file(label_place(image));
        })) {
      builder_.report(kImageUnannotated, split.images.empty() ? split.name : split.images, 0,
                      fmt::format("none of the {} images of split '{}' has a label file",
                                  split.files.size(), split.name));
      return;
    }
    const auto position = builder_.split(split.name, split.images);
    for (const auto& image : split.files) {
      const auto label = label_place(image);
      label_folders_.insert(folder_of(label));
      taken_.insert(label);
      read_image(position, image, label);
    }
  }

  std::vector<Split> finish() && {
    for (const auto& folder : label_folders_)
      for (const auto& name : folder_.files(folder, ".txt")) {
        const auto label = joined_path(folder, name);
        if (!taken_.contains(label) && !is_list_of_names(name))
          builder_.report(kLabelWithoutImage, label);
      }
    if (data_.names.empty())
      builder_.report(kNamesMissing, folder_.root().string(), 0,
                      fmt::format("classes 0 to {}", most_));
    return std::move(builder_).finish();
  }

 private:
  void read_image(std::size_t split, const RelativePath& image, const RelativePath& label) {
    if (!folder_.has_file(label)) {
      const auto open = builder_.add_image(split, image, {}, {image});
      if (open) builder_.report(kImageUnlabelled, image);
      return;
    }
    YoloFile file;
    try {
      file = parse_yolo(read_file(folder_.path(label)), data_.keypoint_numbers);
    } catch (const Error& problem) {
      builder_.report(kFileUnreadable, "", 0, problem.what());
      return;
    }
    const auto open = builder_.add_image(split, image, {}, {label});
    if (!open) return;
    for (const auto& [line, why] : file.faults) builder_.report(kLabelUnreadable, label, line, why);
    for (const auto& one : file.labels) add(*open, one, label);
  }

  void add(const OpenImage& image, const YoloLabel& label, const RelativePath& file) {
    const bool is_named = !data_.names.empty();
    constexpr long long kMostUnnamed = 10'000;
    if (label.category < 0 ||
        label.category >= (is_named ? std::ssize(data_.names) : kMostUnnamed)) {
      builder_.report(kClassUnknown, file, label.line,
                      fmt::format("class {}, but {}", label.category,
                                  is_named ? fmt::format("{} has {} classes (0 to {})", data_.file,
                                                         data_.names.size(), data_.names.size() - 1)
                                           : "class numbers start at 0"));
      return;
    }
    if (label.has_keypoints) builder_.report(kKeypointsDropped, file, label.line);
    const auto k = static_cast<int>(label.category);
    if (!is_named) most_ = std::max(most_, k);
    while (static_cast<int>(builder_.category_count()) <= k)
      builder_.category(fmt::format("class {}", builder_.category_count()));
    ReadObject object{.category = k};
    const double width = image.size.width, height = image.size.height;
    const auto& numbers = label.numbers;
    if (label.polygon) {
      coco::Polygon polygon;
      for (std::size_t i = 0; i < numbers.size(); ++i)
        polygon.push_back(numbers[i] * (i % 2 == 0 ? width : height));
      object.shape = std::vector<coco::Polygon>{std::move(polygon)};
      object.box_of_shape = true;
    } else {
      object.x1 = (numbers[0] - numbers[2] / 2) * width;
      object.y1 = (numbers[1] - numbers[3] / 2) * height;
      object.x2 = (numbers[0] + numbers[2] / 2) * width;
      object.y2 = (numbers[1] + numbers[3] / 2) * height;
    }
    builder_.add(image, std::move(object), {file, label.line});
  }

  const Listing& folder_;
  const YoloData data_;
  SetBuilder builder_;
  int most_ = 0;  // largest class, if classes have no names
  std::set<RelativePath> label_folders_, taken_;
};

/// Returns true if most lines of a text file are labels.
bool reads_as_labels(const std::filesystem::path& file) {
  constexpr std::uint64_t kMost = 16 << 20;
  try {
    const auto labels = parse_yolo(read_file(file, {.max_bytes = kMost}));
    return !labels.labels.empty() && labels.labels.size() >= labels.faults.size();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::optional<std::string> detect_yolo(const Listing& folder) {
  const auto yaml = yolo_yaml_files(folder);
  std::size_t labels = 0, looked_at = 0, sound = 0;
  RelativePath first;
  for (const auto& image : folder.images_below("")) {
    const auto label = label_place(image);
    if (!folder.has_file(label)) continue;
    ++labels;
    if (first.empty()) first = label;
    constexpr std::size_t kMostLookedAt = 20;  // more than one, since labels may be empty
    if (sound == 0 && looked_at < kMostLookedAt) {
      ++looked_at;
      sound += reads_as_labels(folder.path(label)) ? 1 : 0;
    }
  }
  const auto files = counted(labels, "text file");
  if (!yaml.empty() && labels > 0)
    return fmt::format("{} with classes, and {} beside images, such as {}", yaml[0], files, first);
  if (sound > 0) return fmt::format("{} with numbers beside images, such as {}", files, first);
  return {};
}

std::vector<Split> read_yolo(const Listing& folder, coco::Findings& findings) {
  auto data = read_yolo_data(folder);
  const auto splits = splits_of(folder, data, findings);
  YoloReader reader(folder, std::move(data), findings);
  for (const auto& split : splits) reader.read(split);
  return std::move(reader).finish();
}

}  // namespace millrace::formats
