#include <fmt/format.h>

#include <iterator>
#include <string>

#include "millrace/formats/all_formats.h"
#include "millrace/formats/writers/writing.h"

namespace millrace::formats {
namespace {

using Buffer = fmt::memory_buffer;

template <class... Arguments>
void append(Buffer& to, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(to), text, std::forward<Arguments>(arguments)...);
}

void append_shape(Buffer& to, const coco::Segmentation& shape, bool crowd) {
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
    append(to, ",\"segmentation\":[");
    for (std::size_t i = 0; i < polygons->size(); ++i)
      append(to, "{}[{}]", i == 0 ? "" : ",", fmt::join((*polygons)[i], ","));
    append(to, "]");
  }
  if (const auto* mask = std::get_if<coco::Rle>(&shape)) {
    append(to, ",\"segmentation\":{{\"size\":[{},{}],\"counts\":", mask->height, mask->width);
    // As in COCO's own files: numbers for crowds, text for others.
    if (crowd)
      append(to, "[{}]}}", fmt::join(mask->counts, ","));
    else
      append(to, "{}}}", json_quoted(coco::encode_counts(*mask)));
  }
}

void append_annotation(Buffer& to, const coco::Dataset& data, const coco::Annotation& one) {
  append(
      to, "{{\"id\":{},\"image_id\":{},\"category_id\":{},\"bbox\":[{}],\"area\":{},\"iscrowd\":{}",
      one.id, one.image_id, one.category_id, fmt::join(one.bbox, ","), one.area, one.crowd ? 1 : 0);
  if (one.ignored) append(to, ",\"ignore\":1");
  append_shape(to, data.segmentation(one), one.crowd);
  if (one.keypoint_count > 0)
    append(to, ",\"keypoints\":[{}],\"num_keypoints\":{}", fmt::join(data.keypoints_of(one), ","),
           one.num_keypoints);
  append(to, "}}");
}

std::string json_of(const coco::Dataset& data) {
  Buffer text;
  append(text, "{{\"info\":{{\"description\":\"written by trainer import\"}},\n\"categories\":[");
  const auto divide = [&](bool first) { append(text, "{}\n", first ? "" : ","); };
  for (std::size_t i = 0; i < data.categories.size(); ++i) {
    divide(i == 0);
    append(text, "{{\"id\":{},\"name\":{}}}", data.categories[i].id,
           json_quoted(data.text(data.categories[i].name)));
  }
  append(text, "],\n\"images\":[");
  for (std::size_t i = 0; i < data.images.size(); ++i) {
    const auto& image = data.images[i];
    divide(i == 0);
    append(text, "{{\"id\":{},\"file_name\":{},\"width\":{},\"height\":{}}}", image.id,
           json_quoted(data.text(image.file_name)), image.width, image.height);
  }
  append(text, "],\n\"annotations\":[");
  bool first = true;
  for (const auto& image : data.images)
    for (const auto& object : data.objects(image)) {
      divide(first);
      first = false;
      append_annotation(text, data, object);
    }
  append(text, "]}}\n");
  return {text.data(), text.size()};
}

}  // namespace

void write_coco(std::span<const Split> splits, const std::filesystem::path& out, coco::Findings&) {
  for (const auto& split : splits) {
    for (const auto& image : split.data->images) {
      const auto name = split.data->text(image.file_name);
      place_file(split.images / name, out / split.name / name);
    }
    write_new_file(out / "annotations" / ("instances_" + split.name + ".json"),
                   json_of(*split.data));
  }
}

}  // namespace millrace::formats
