#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/tools/formats/faults.h"
#include "millrace/tools/formats/files/csv_table.h"
#include "millrace/tools/formats/files/image_finder.h"
#include "millrace/tools/formats/set_builder.h"

namespace millrace::formats {
namespace {

/// Returns the columns of a file; nullopt if it is not a table of boxes.
std::optional<CsvColumns> columns_in(const std::filesystem::path& file) {
  const auto head = beginning_of(file, 65536);
  const auto rows = csv_rows(head.substr(0, head.find('\n')));
  return rows.empty() ? std::nullopt : csv_columns(rows[0].fields);
}

struct CsvFile {
  RelativePath place;
  std::string split;
};

std::vector<CsvFile> csv_files(const Listing& folder) {
  std::vector<CsvFile> files;
  for (const auto& place : folder.all_files(".csv"))
    if (columns_in(folder.path(place)))
      // The file's name determines the split, such as train for train_labels.csv or val for
      // validation-annotations-bbox.csv; otherwise the folders do.
      files.push_back({place, split_in_words(stem_of(place)).value_or(split_of_path(place))});
  return files;
}

/// Returns the rows with two fields, such as class,number or code,name.
std::vector<CsvRow> pairs_in(const std::filesystem::path& file) {
  auto rows = csv_rows(read_file(file));
  std::erase_if(rows, [](const CsvRow& row) { return row.fields.size() != 2; });
  return rows;
}

/// Returns the CSV files whose names begin with `beginning`.
std::vector<RelativePath> csv_named(const Listing& folder, std::string_view beginning) {
  auto places = folder.all_files(".csv");
  std::erase_if(places, [&](const RelativePath& place) {
    return !lower_case(name_of(place)).starts_with(beginning);
  });
  return places;
}

class CsvReader {
 public:
  CsvReader(const Listing& folder, coco::Findings& findings)
      : folder_(folder), images_(folder), builder_(folder, findings) {
    for (const auto& place : csv_named(folder, "class-descriptions"))  // Open Images
      for (const auto& row : pairs_in(folder.path(place))) names_[row.fields[0]] = row.fields[1];
    std::map<long long, std::string> ordered;  // keras-retinanet: name,number
    for (const auto& place : csv_named(folder, "class"))
      for (const auto& row : pairs_in(folder.path(place)))
        if (const auto number = integer_in(row.fields[1])) ordered[*number] = row.fields[0];
    for (const auto& [number, name] : ordered) builder_.category(name);
    if (ordered.empty()) builder_.sort_categories();
  }

  void read(const CsvFile& file) {
    const auto rows = csv_rows(read_file(folder_.path(file.place)));
    const auto columns = *csv_columns(rows[0].fields);
    std::vector<std::pair<int, CsvBox>> boxes;
    for (std::size_t i = columns.has_header ? 1 : 0; i < rows.size(); ++i) {
      CsvBox box;
      const auto why = read_csv_box(rows[i], columns, box);
      if (why.empty())
        boxes.emplace_back(rows[i].line, std::move(box));
      else
        builder_.report(kLabelUnreadable, file.place, rows[i].line, why);
    }
    const bool are_shares =
        std::ranges::any_of(boxes, is_full) && std::ranges::all_of(boxes, has_shares);
    for (auto& [line, box] : boxes) add(file, line, std::move(box), are_shares);
  }

  std::vector<Split> finish() && { return std::move(builder_).finish(images_); }

 private:
  static bool is_full(const std::pair<int, CsvBox>& one) { return !one.second.empty; }
  static bool has_shares(const std::pair<int, CsvBox>& one) {
    const auto& box = one.second;
    return box.empty || (std::min({box.x1, box.y1, box.x2, box.y2}) >= 0 &&
                         std::max({box.x1, box.y1, box.x2, box.y2}) <= 1);
  }

  void add(const CsvFile& file, int line, CsvBox box, bool are_shares) {
    auto image = images_.by_name(box.image, file.place);
    if (!image) image = images_.by_stem(box.image, file.place);
    if (!image) {
      builder_.report(kLabelWithoutImage, file.place, line, fmt::format("'{}'", box.image));
      return;
    }
    const auto split = builder_.split(file.split, folder_of(*image));
    const auto open = builder_.add_image(
        split, *image, given_size(box.image_width, box.image_height), {file.place, line});
    if (!open || box.empty) return;
    const double across = are_shares ? open->size.width : 1,
                 down = are_shares ? open->size.height : 1;
    const auto known = names_.find(box.category);
    builder_.add(
        *open,
        {.category = builder_.category(known == names_.end() ? box.category : known->second),
         .x1 = box.x1 * across,
         .y1 = box.y1 * down,
         .x2 = box.x2 * across,
         .y2 = box.y2 * down,
         .crowd = box.crowd},
        {file.place, line});
  }

  const Listing& folder_;
  const ImageFinder images_;
  SetBuilder builder_;
  std::map<std::string, std::string, std::less<>> names_;  // class names by code
};

}  // namespace

std::optional<std::string> detect_csv(const Listing& folder) {
  const auto files = csv_files(folder);
  if (files.empty()) return {};
  return fmt::format("{} is a table of boxes", files[0].place);
}

std::vector<Split> read_csv(const Listing& folder, coco::Findings& findings) {
  const auto files = csv_files(folder);
  std::map<std::string, RelativePath> by_split;
  for (const auto& [place, split] : files) {
    const auto [first, is_new] = by_split.try_emplace(split, place);
    if (!is_new)
      throw Error(
          fmt::format("{}: {} and {} are both tables of boxes of split '{}': keep one of them",
                      folder.root().string(), first->second, place, split));
  }
  CsvReader reader(folder, findings);
  for (const auto& file : files) reader.read(file);
  return std::move(reader).finish();
}

}  // namespace millrace::formats
