#include <string>

#include "millrace/coco/data/dataset_file.h"
#include "millrace/tools/formats/all_formats.h"
#include "millrace/tools/formats/writers/writing.h"

namespace millrace::formats {

void write_coco(std::span<const Split> splits, const std::filesystem::path& out, coco::Findings&) {
  for (const auto& split : splits) {
    for (const auto& image : split.data->images) {
      const auto name = split.data->text(image.file_name);
      place_file(split.images / name, out / split.name / name);
    }
    write_new_file(out / "annotations" / ("instances_" + split.name + ".json"),
                   coco::dataset_text(*split.data));
  }
}

}  // namespace millrace::formats
