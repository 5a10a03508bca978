// Label files of other tools, and PNG masks: any input is read or rejected with an Error, and
// accepted data is valid. The first byte selects the parser.
#include <cmath>

#include "millrace/base/base64.h"
#include "millrace/base/errors.h"
#include "millrace/tools/formats/files/csv_table.h"
#include "millrace/tools/formats/files/image_size.h"
#include "millrace/tools/formats/files/labelme_file.h"
#include "millrace/tools/formats/files/png_masks.h"
#include "millrace/tools/formats/files/voc_file.h"
#include "millrace/tools/formats/files/yolo_labels.h"
#include "tests/fuzz/laws.h"

namespace millrace::fuzz {
namespace {

using namespace formats;

template <typename F>
void read_or_refuse(F read) {
  try {
    read();
  } catch (const Error& error) {
    MILLRACE_LAW(*error.what() != '\0');
  }
}

void check_yolo(std::string_view text) {
  const auto file = parse_yolo(text, /*keypoint_numbers=*/6);
  for (const auto& label : file.labels) {
    MILLRACE_LAW(label.line > 0);
    MILLRACE_LAW(label.polygon ? label.numbers.size() >= 6 && label.numbers.size() % 2 == 0
                               : label.numbers.size() == 4);
    for (const double number : label.numbers) MILLRACE_LAW(std::isfinite(number));
  }
  for (const auto& fault : file.faults) MILLRACE_LAW(fault.line > 0 && !fault.why.empty());
}

void check_voc(std::string_view text) {
  const auto file = parse_voc(text);
  MILLRACE_LAW(!file.size || (file.size->width > 0 && file.size->height > 0));
  for (const auto& object : file.objects)
    MILLRACE_LAW(!object.name.empty() && std::isfinite(object.x1 + object.y1) &&
                 std::isfinite(object.x2) && std::isfinite(object.y2));
}

void check_labelme(std::string_view text) {
  const auto file = parse_labelme(std::string(text), "fuzz");
  for (const auto& object : file.objects) {
    MILLRACE_LAW(!object.label.empty());
    for (const auto& polygon : object.polygons)
      MILLRACE_LAW(polygon.size() >= 6 && polygon.size() % 2 == 0);
  }
}

void check_csv(std::string_view text) {
  const auto rows = csv_rows(text);
  if (rows.empty()) return;
  const auto columns = csv_columns(rows[0].fields);
  if (!columns) return;
  for (const auto& row : rows) {
    CsvBox box;
    if (read_csv_box(row, *columns, box).empty() && !box.empty)
      MILLRACE_LAW(!box.image.empty() && !box.category.empty() && !std::isnan(box.x2 + box.y2));
  }
}

void check_png(std::string_view bytes) {
  const auto picture = parse_png_values(bytes);
  MILLRACE_LAW(picture.values.size() == std::size_t{picture.width} * picture.height);
  const auto masks = masks_of_values(picture, 100);
  if (!masks) return;
  for (const auto& [value, mask] : *masks) {
    std::uint64_t pixels = 0;
    for (const auto& part : connected_parts(mask)) pixels += coco::area(part);
    MILLRACE_LAW(pixels == coco::area(mask));
  }
}

}  // namespace

void check(Input input) {
  const auto kind = input.take<std::uint8_t>();
  const auto text = input.rest();
  switch (kind) {
    case 'y':
      return check_yolo(text);
    case 'x':
      return read_or_refuse([&] { check_voc(text); });
    case 'l':
      return read_or_refuse([&] { check_labelme(text); });
    case 'c':
      return check_csv(text);
    case 'p':
      return read_or_refuse([&] { check_png(text); });
    case 'b':
      return read_or_refuse([&] { from_base64(text); });
    default:
      read_sizes(text);
  }
}

}  // namespace millrace::fuzz
