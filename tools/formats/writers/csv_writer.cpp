#include <fmt/format.h>

#include <string>

#include "millrace/tools/formats/all_formats.h"
#include "millrace/tools/formats/files/texts.h"
#include "millrace/tools/formats/writers/losses.h"
#include "millrace/tools/formats/writers/writing.h"

namespace millrace::formats {
namespace {

constexpr int kCsvDecimals = 6;

}  // namespace

void write_csv(std::span<const Split> splits, const std::filesystem::path& out,
               coco::Findings& findings) {
  const ClassList classes(splits);
  for (const auto& [name, split] : named_splits(splits)) {
    const auto& data = *split->data;
    std::string table = "filename,width,height,class,xmin,ymin,xmax,ymax\n";
    for (const auto& image : data.images) {
      const Place file(data.text(image.file_name));
      place_file(split->images / file, out / name / file);
      const auto start =
          fmt::format("{},{},{},", csv_field(name + "/" + file), image.width, image.height);
      bool is_empty = true;
      for (const auto& object : data.objects(image)) {
        if (object.crowd) {
          tell_lost(findings, kCrowdLost, data, image, object);
          continue;
        }
        tell_marks_lost(findings, data, image, object);
        if (object.shape.kind != coco::ShapeKind::none)
          tell_lost(findings, kShapeLost, data, image, object);
        const auto [x, y, width, height] = object.bbox;
        table += fmt::format(
            "{}{},{},{},{},{}\n", start, csv_field(classes.name(data, object.category_id)),
            decimal_text(x, kCsvDecimals), decimal_text(y, kCsvDecimals),
            decimal_text(x + width, kCsvDecimals), decimal_text(y + height, kCsvDecimals));
        is_empty = false;
      }
      if (is_empty) table += start + ",,,,\n";
    }
    write_new_file(out / (name == kWhole ? "boxes.csv" : name + ".csv"), table);
  }
}

}  // namespace millrace::formats
