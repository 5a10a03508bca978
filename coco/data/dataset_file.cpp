#include "millrace/coco/data/dataset_file.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "millrace/base/files.h"

namespace millrace::coco {
namespace {

/// Returns the text as a JSON string.
std::string quoted_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
}

template <class Range>
void put_list(std::string& out, const Range& values) {
  fmt::format_to(std::back_inserter(out), "[{}]", fmt::join(values, ","));
}

void put_shape(std::string& out, const Segmentation& shape, bool crowd) {
  if (const auto* mask = std::get_if<Rle>(&shape)) {
    out +=
        fmt::format(",\"segmentation\":{{\"size\":[{},{}],\"counts\":", mask->height, mask->width);
    // Crowds as plain counts like in COCO's files, which some tools expect.
    if (crowd)
      put_list(out, mask->counts);
    else
      out += quoted_text(encode_counts(*mask));
    out += '}';
  } else if (const auto* polygons = std::get_if<std::vector<Polygon>>(&shape)) {
    out += ",\"segmentation\":[";
    for (std::size_t i = 0; i < polygons->size(); ++i) {
      if (i > 0) out += ',';
      put_list(out, (*polygons)[i]);
    }
    out += ']';
  }
}

void put(std::string& out, const Dataset& data, const Image& image) {
  out += fmt::format(R"({{"id":{},"file_name":{},"width":{},"height":{})", image.id,
                     quoted_text(data.text(image.file_name)), image.width, image.height);
  const auto put_ids = [&](std::string_view name, std::span<const std::int64_t> ids) {
    if (ids.empty()) return;
    out += fmt::format(",\"{}\":", name);
    put_list(out, ids);
  };
  put_ids("neg_category_ids", data.negative_categories(image));
  put_ids("not_exhaustive_category_ids", data.not_exhaustive_categories(image));
  out += '}';
}

void put(std::string& out, const Dataset& data, const Annotation& one) {
  out += fmt::format(R"({{"id":{},"image_id":{},"category_id":{},"bbox":)", one.id, one.image_id,
                     one.category_id);
  put_list(out, one.bbox);
  out += fmt::format(",\"area\":{},\"iscrowd\":{}", one.area, one.crowd ? 1 : 0);
  if (one.ignored) out += ",\"ignore\":1";
  if (one.keypoint_count > 0) {
    out += ",\"keypoints\":";
    put_list(out, data.keypoints_of(one));
    out += fmt::format(",\"num_keypoints\":{}", one.num_keypoints);
  }
  put_shape(out, data.segmentation(one), one.crowd);
  out += '}';
}

void put(std::string& out, const Dataset& data, const Category& category) {
  out += fmt::format(R"({{"id":{},"name":{})", category.id, quoted_text(data.text(category.name)));
  if (category.frequency != 0) out += fmt::format(R"(,"frequency":"{}")", category.frequency);
  out += '}';
}

template <class Records>
void put_section(std::string& out, const Dataset& data, std::string_view name,
                 const Records& records) {
  out += fmt::format("\"{}\":[", name);
  for (std::size_t i = 0; i < records.size(); ++i) {
    out += i > 0 ? ",\n" : "\n";
    put(out, data, records[i]);
  }
  out += ']';
}

std::string dataset_text(const Dataset& data) {
  std::string out = "{";
  put_section(out, data, "images", data.images);
  out += ",\n";
  put_section(out, data, "annotations", data.annotations);
  out += ",\n";
  put_section(out, data, "categories", data.categories);
  return out + "}\n";
}

}  // namespace

void write_dataset(const std::filesystem::path& json, const Dataset& data) {
  write_file_atomically(json, dataset_text(data));
}

}  // namespace millrace::coco
