#include "millrace/cli/init/source_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/base/word_wrap.h"
#include "millrace/cli/findings_text.h"
#include "millrace/cli/image_progress.h"
#include "millrace/coco/data/records.h"
#include "millrace/tools/data/checks.h"
#include "millrace/tools/data/similarity.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAll = 1'000'000;   // maximum number of findings; each is acted on
constexpr std::size_t kDecoded = 20'000;  // images; in larger sets only headers are read
constexpr std::string_view kSkipped[] = {"image-missing", "image-size", "image-unreadable"};

/// Notes that are shown to a user with new data; errors and warnings are always shown.
constexpr std::string_view kTold[] = {"class-imbalance", "box-elongated", "image-empty",
                                      "image-unannotated", "image-unlabelled"};

/// Findings of a reader, with the label's file and line, and the doctor's name for the same
/// problem.
constexpr std::pair<std::string_view, std::string_view> kToldTwice[] = {
    {"label-outside", "box-outside"}, {"label-empty", "box-unusable"}};

std::string joined_names(const std::vector<formats::Split>& splits) {
  std::vector<std::string> names;
  for (const auto& split : splits) names.push_back("'" + split.name + "'");
  return joined(names);
}

/// Removes the first split with a canonical name from the list and returns it.
std::optional<formats::Split> take_split(std::vector<formats::Split>& splits,
                                         std::string_view name) {
  const auto found = std::ranges::find_if(splits, [&](const formats::Split& one) {
    return formats::split_name(one.name).value_or(one.name) == name;
  });
  if (found == splits.end()) return std::nullopt;
  auto split = std::move(*found);
  splits.erase(found);
  return split;
}

/// Returns the ids of categories with objects in any split, each mapped to the first id that has
/// the same name.
std::map<std::int64_t, std::int64_t> used_categories(const formats::Split& split,
                                                     const std::set<std::string>& used) {
  std::map<std::int64_t, std::int64_t> kept;
  std::map<std::string, std::int64_t> first;
  for (const auto& category : split.data->categories) {
    const std::string name(split.data->text(category.name));
    if (used.contains(name)) kept[category.id] = first.try_emplace(name, category.id).first->second;
  }
  return kept;
}

void add_used_names(const formats::Split& split, std::set<std::string>& names) {
  for (const auto& object : split.data->annotations)
    if (const auto k = split.data->category_index(object.category_id); k >= 0)
      names.emplace(split.data->text(split.data->categories[static_cast<std::size_t>(k)].name));
}

std::vector<std::string> file_names(const formats::Split& split) {
  std::vector<std::string> names;
  for (const auto& image : split.data->images)
    names.emplace_back(split.data->text(image.file_name));
  return names;
}

/// Returns the ids of images that training would skip.
std::set<std::int64_t> skipped_images(const coco::Findings& findings) {
  std::set<std::int64_t> ids;
  for (const auto& finding : findings.sorted())
    if (std::ranges::count(kSkipped, finding.kind.name) > 0)
      for (const auto& example : finding.examples)
        if (example.image) ids.insert(*example.image);
  return ids;
}

/// Returns true if a split is where `data.root` = `folder` expects it.
bool has_layout(const fs::path& folder, const formats::Split& split) {
  return (split.images / "").lexically_normal() == (folder / split.name / "").lexically_normal() &&
         fs::is_regular_file(folder / "annotations" / ("instances_" + split.name + ".json"));
}

/// Returns one sentence for each relevant kind of finding, with its first example.
std::vector<std::string> sentences(const coco::Findings& findings) {
  std::vector<std::string> result;
  const auto all = findings.sorted();
  const auto is_told_twice = [&](std::string_view name) {
    return std::ranges::any_of(kToldTwice, [&](const auto& pair) {
      return pair.second == name && std::ranges::any_of(all, [&](const coco::Finding& one) {
               return one.kind.name == pair.first;
             });
    });
  };
  for (const auto& [kind, count, examples, where] : all) {
    if (is_told_twice(kind.name)) continue;
    if (kind.severity == coco::Severity::note && std::ranges::count(kTold, kind.name) == 0)
      continue;
    auto text = fmt::format("{}: {}", severity_name(kind.severity), kind.what);
    if (!examples.empty()) text += ": " + examples.front().text();
    if (count > 1) text += fmt::format(" and {} more", count - 1);
    result.push_back(fmt::format("{}; {} ({})", text, kind.effect, kind.name));
  }
  return result;
}

/// Examines the splits, adds findings to `data.findings`, and removes images that training would
/// skip. `masks`: masks are learned, so shapes are checked too. Throws ConfigError if nothing is
/// left to train on.
void examine_splits(SourceData& data, bool masks) {
  std::set<std::string> used;
  add_used_names(data.train, used);
  if (data.val) add_used_names(*data.val, used);
  std::vector<NamedSplit> named;
  const auto look = [&](formats::Split& split) {
    NamedSplit seen{split.name, as_data_split(split)};
    auto found = data.findings.none();
    const auto how = split.data->images.size() > kDecoded ? ImageCheck::heads : ImageCheck::decode;
    ImageProgress progress("examining " + split.name, split.data->images.size());
    check_split(seen, {.shapes = masks, .images = how}, found, std::ref(progress));
    const auto skipped = skipped_images(found);
    data.findings.append(found);
    std::vector<std::size_t> kept;
    std::vector<FileMark> marks;
    for (std::size_t i = 0; i < seen.marks.size(); ++i)
      if (!skipped.contains(split.data->images[i].id)) {
        kept.push_back(i);
        marks.push_back(seen.marks[i]);
      }
    split.data = coco::subset(*split.data, kept, used_categories(split, used));
    named.push_back({split.name, as_data_split(split), std::move(marks)});
  };
  look(data.train);
  if (data.val) look(*data.val);
  for (auto& split : named) {  // all splits get the classes of train
    split.data.classes = named[0].data.classes;
    split.data.category_ids = find_categories(*split.data.annotations, split.data.classes);
  }
  for (const auto& one : data.findings.sorted())
    data.is_ready = data.is_ready && one.kind.severity != coco::Severity::error;
  check_classes(named, count_classes(named), data.findings);
  check_copies(named, data.findings);
  if (data.train.data->images.empty())
    throw ConfigError(fmt::format("{}: no image can be read; first finding: {}",
                                  data.train.images.string(), sentences(data.findings).front()));
  if (used.empty())
    throw ConfigError(fmt::format("{}: no annotated objects in {}", data.train.images.string(),
                                  counted(data.train.data->images.size(), "image")));
}

}  // namespace

DataSplit as_data_split(const formats::Split& split, std::vector<std::string> classes) {
  if (classes.empty())
    for (const auto& category : split.data->categories)
      classes.emplace_back(split.data->text(category.name));
  auto ids = find_categories(*split.data, classes);
  return {split.data, split.images, std::move(classes), std::move(ids)};
}

SourceData read_source(const fs::path& folder, const std::string& format) {
  const formats::Listing listing(folder);
  const auto detected = format.empty()
                            ? formats::detect_format(listing)
                            : formats::Detected{&formats::find_format(format), "by --format"};
  SourceData data{
      std::string(detected.format->title), detected.why, {}, {}, {}, coco::Findings(kAll)};
  data.format = data.format.substr(0, data.format.find(':'));
  auto splits = detected.format->read(listing, data.findings);
  auto train = take_split(splits, "train");
  if (train) data.val = take_split(splits, "val");
  if (!train && splits.size() == 1) {
    train = std::move(splits.front());
    splits.clear();
  }
  if (!train)
    throw ConfigError(fmt::format(
        "{} has the splits {}; rename the one for training to 'train', or give its folder",
        folder.string(), joined_names(splits)));
  data.train = std::move(*train);
  for (const auto& split : splits) data.unused.push_back(split.name);
  data.is_ready = detected.format->name == "coco" && data.val && has_layout(folder, data.train) &&
                  has_layout(folder, *data.val);
  if (data.train.data->images.empty())
    throw ConfigError(
        fmt::format("{} ({}): no training images found", folder.string(), data.format));
  return data;
}

void InitReport::add(const std::string& what, const std::string& text) {
  json[what] = text;
  print(what + ": " + text);
}

void InitReport::print(const std::string& text) { print_line(wrapped(text, 80, "    ") + '\n'); }

void InitReport::examine(const std::filesystem::path& folder, SourceData& data, bool masks) {
  const auto& train = *data.train.data;
  add("data", fmt::format("{}: {} ({}), {}, {}", folder.string(), data.format, data.why,
                          counted(train.images.size(), "image"),
                          counted(train.annotations.size(), "object")));
  examine_splits(data, masks);
  json["findings"] = Json::array();
  for (const auto& sentence : sentences(data.findings)) {
    print(sentence);
    json["findings"].push_back(sentence);
  }
  if (!data.unused.empty())
    add("unused", fmt::format("{} in {}, used neither for training nor for validation",
                              joined(data.unused), folder.string()));
}

void InitReport::print_line(const std::string& line) {
  if (as_json_) return;
  print_text(line);
  std::fflush(stdout);
}

Division divide(SourceData& data, std::uint64_t seed) {
  const auto& all = *data.train.data;
  const auto names = file_names(data.train);
  ImageProgress progress("comparing images", names.size());
  const auto thumbprints =
      advice::compute_thumbprints(as_data_split(data.train), std::ref(progress));
  const auto groups = advice::group_images(names, thumbprints);
  std::vector<advice::SplitImage> images(all.images.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::set<std::size_t> classes;
    for (const auto& object : all.objects(all.images[i]))
      if (!object.crowd)
        classes.insert(static_cast<std::size_t>(all.category_index(object.category_id)));
    images[i] = {groups.group[i], {classes.begin(), classes.end()}};
  }
  const auto validates = advice::choose_split(images, all.categories.size(),
                                              advice::validation_share(images.size()), seed);
  Division division{groups.copies, groups.scenes, groups.cut, {}, false};
  if (std::ranges::count(validates, true) == 0) {
    division.same = true;
    data.val = data.train;
    return division;
  }
  std::vector<std::size_t> sides[2];
  for (std::size_t i = 0; i < images.size(); ++i) sides[validates[i] ? 1 : 0].push_back(i);
  std::set<std::size_t> evaluated;
  for (const auto i : sides[1])
    evaluated.insert(images[i].classes.begin(), images[i].classes.end());
  for (std::size_t k = 0; k < all.categories.size(); ++k)
    if (!evaluated.contains(k)) division.unvalidated.emplace_back(all.text(all.categories[k].name));
  std::map<std::int64_t, std::int64_t> categories;
  for (const auto& category : all.categories) categories[category.id] = category.id;
  data.val = formats::Split{"val", data.train.images, coco::subset(all, sides[1], categories)};
  data.train = {"train", data.train.images, coco::subset(all, sides[0], categories)};
  return division;
}

std::optional<std::vector<std::string>> leaks(const SourceData& data) {
  const auto trained = file_names(data.train), evaluated = file_names(*data.val);
  if (trained.size() + evaluated.size() > kDecoded) return std::nullopt;
  ImageProgress progress("comparing images", trained.size() + evaluated.size());
  auto thumbprints = advice::compute_thumbprints(as_data_split(data.train), std::ref(progress));
  const auto others = advice::compute_thumbprints(as_data_split(*data.val), std::ref(progress));
  thumbprints.insert(thumbprints.end(), others.begin(), others.end());
  const auto groups = advice::copy_groups(thumbprints);
  std::map<std::size_t, std::size_t> first;  // first train image of each group
  for (std::size_t i = 0; i < trained.size(); ++i) first.try_emplace(groups[i], i);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < evaluated.size(); ++i)
    if (const auto same = first.find(groups[trained.size() + i]); same != first.end())
      found.push_back(fmt::format("{} as {}", evaluated[i], trained[same->second]));
  return found;
}

}  // namespace millrace::cli
