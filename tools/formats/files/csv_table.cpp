#include "millrace/tools/formats/files/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "millrace/dataflow/image/image_head.h"
#include "millrace/tools/formats/files/listing.h"

namespace millrace::formats {
namespace {

using Column = std::optional<std::size_t>;

std::string bare_name(std::string_view name) {
  std::string bare;
  for (const unsigned char one : name)
    if (std::isalnum(one) != 0) bare += static_cast<char>(std::tolower(one));
  return bare;
}

/// Returns the first of these names that the header has.
template <std::size_t N>
Column find_column(const std::vector<std::string>& header, const char* const (&names)[N]) {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(header, name);
    if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  }
  return {};
}

/// Matches the row path,x1,y1,x2,y2,class; the last five are empty for an image without objects.
bool is_retinanet_row(const std::vector<std::string>& row) {
  if (row.size() != 6 || !is_image_name(row[0])) return false;
  const bool is_empty = std::ranges::all_of(row.begin() + 1, row.end(),
                                            [](const auto& field) { return field.empty(); });
  return is_empty || std::all_of(row.begin() + 1, row.begin() + 5,
                                 [](const auto& field) { return number_in(field).has_value(); });
}

std::optional<CsvColumns> header_columns(const std::vector<std::string>& first_row) {
  std::vector<std::string> header;
  for (const auto& name : first_row) header.push_back(bare_name(name));
  const auto image = find_column(header, {"filename", "file", "filepath", "imagepath", "path",
                                          "imagename", "imagefile", "image", "imageid", "img"});
  if (!image) return {};
  CsvColumns found{.image = *image};
  found.category = find_column(
      header, {"class", "label", "classname", "labelname", "category", "categoryname", "name"});
  found.group = find_column(header, {"isgroupof", "iscrowd"});
  found.x1 = find_column(header, {"xmin", "x1", "left", "bboxxmin", "x", "bboxx"});
  found.y1 = find_column(header, {"ymin", "y1", "top", "bboxymin", "y", "bboxy"});
  found.x2 = find_column(header, {"xmax", "x2", "right", "bboxxmax"});
  found.y2 = find_column(header, {"ymax", "y2", "bottom", "bboxymax"});
  found.image_width = find_column(header, {"imagewidth", "imgwidth", "imagew"});
  found.image_height = find_column(header, {"imageheight", "imgheight", "imageh"});
  const auto w = find_column(header, {"w", "bboxwidth", "boxwidth", "bboxw"}),
             h = find_column(header, {"h", "bboxheight", "boxheight", "bboxh"}),
             width = find_column(header, {"width"}), height = find_column(header, {"height"});
  const bool has_corners = found.x1 && found.y1 && found.x2 && found.y2;
  if (!has_corners) {
    found.x2 = found.y2 = {};
    found.width = w ? w : width;
    found.height = h ? h : height;
  }
  // Columns width and height are the image's size if the box has other columns.
  if ((has_corners || w) && !found.image_width) found.image_width = width;
  if ((has_corners || h) && !found.image_height) found.image_height = height;
  if (has_corners || (found.x1 && found.y1 && found.width && found.height)) return found;
  found.box = find_column(header, {"bbox", "box"});
  if (!found.box) return {};
  found.x1 = found.y1 = found.width = found.height = {};
  found.image_width = width, found.image_height = height;
  return found;
}

}  // namespace

std::optional<CsvColumns> csv_columns(const std::vector<std::string>& first_row) {
  if (is_retinanet_row(first_row))
    return CsvColumns{.has_header = false, .category = 5, .x1 = 1, .y1 = 2, .x2 = 3, .y2 = 4};
  return header_columns(first_row);
}

std::string read_csv_box(const CsvRow& row, const CsvColumns& columns, CsvBox& box) {
  const auto field = [&](const Column& column) -> std::string_view {
    return column && *column < row.fields.size() ? std::string_view(row.fields[*column])
                                                 : std::string_view();
  };
  box.image = field(columns.image);
  if (box.image.empty()) return "has no image name";
  box.category = columns.category ? field(columns.category) : "object";
  box.crowd = !field(columns.group).empty() && field(columns.group) != "0" &&
              lower_case(field(columns.group)) != "false";
  box.image_width = number_in(field(columns.image_width));
  box.image_height = number_in(field(columns.image_height));
  std::array<std::string_view, 4> texts = {field(columns.x1), field(columns.y1),
                                           field(columns.width ? columns.width : columns.x2),
                                           field(columns.height ? columns.height : columns.y2)};
  std::string spaced;  // the single column's text without brackets and separators
  if (columns.box) {
    for (const char one : field(columns.box))
      spaced += one == '[' || one == ']' || one == '(' || one == ')' || one == ',' || one == ';'
                    ? ' '
                    : one;
    const auto words = words_of(spaced);
    if (words.size() != 4 && !words.empty())
      return fmt::format("'{}' is not a box of four numbers", field(columns.box));
    std::ranges::copy(words, texts.begin());
  }
  box.empty = std::ranges::all_of(texts, [](auto text) { return text.empty(); });
  if (box.empty) return {};
  if (box.category.empty()) return "has no class name";
  std::array<double, 4> numbers{};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto number = number_in(texts[i]);
    if (!number) return fmt::format("'{}' is not a number", texts[i]);
    numbers[i] = *number;
  }
  const bool is_sized = columns.width || columns.box;
  box.x1 = numbers[0], box.y1 = numbers[1];
  box.x2 = numbers[2] + (is_sized ? box.x1 : 0), box.y2 = numbers[3] + (is_sized ? box.y1 : 0);
  return {};
}

}  // namespace millrace::formats
