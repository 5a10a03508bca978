// Results files: an array of detections.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/coco/data/list_pieces.h"
#include "millrace/coco/data/readers.h"
#include "millrace/coco/data/segmentation.h"

namespace millrace::coco {
namespace {

class DetectionReader {
 public:
  explicit DetectionReader(const Dataset* images) : images_(images) {}

  Detections detections;

  void clear() { detections.clear(); }

  void read(json::object fields, const char* at) {
    Detections::Record one;
    shape_.counts = {};
    shape_.polygons.clear();
    keypoints_.clear();
    read_fields(fields, at, required("image_id", one.image_id),
                required("category_id", one.category_id),
                required("score", [&](json::value v) { one.score = number(v, "score"); }),
                optional("bbox", [&](json::value v) { one.has_bbox = read_box(v, one.bbox); }),
                optional("segmentation", [&](json::value v) { read_segmentation(v, shape_); }),
                optional("keypoints", [&](json::value v) { read_keypoints(v, keypoints_); }));
    if (!shape_.polygons.empty()) rasterize(one.image_id);
    if (!has_any(one))
      throw Wrong{at, "neither 'bbox' nor 'segmentation' nor 'keypoints' is there"};
    try {
      add(one);
    } catch (const Error& problem) {
      throw Wrong{shape_.at, problem.what()};
    }
  }

  /// The same for one that begins where `text` is; false where it is not plain or not sound.
  bool read_plain(PlainJson& text) {
    Detections::Record one;
    std::uint16_t count = 0;  // of keypoints
    shape_.counts = {};
    keypoints_.clear();
    const bool read = text.fields(
        required("image_id", [&] { return text.integer(one.image_id); }),
        required("category_id", [&] { return text.integer(one.category_id); }),
        required("score", [&] { return text.number(one.score); }),
        optional("bbox", [&] { return one.has_bbox = read_plain_box(text, one.bbox); }),
        optional("segmentation", [&] { return read_plain_segmentation(text, shape_); }),
        optional("keypoints", [&] { return read_plain_keypoints(text, keypoints_, count); }));
    if (!read || !has_any(one)) return false;
    add(one);
    return true;
  }

 private:
  /// Of box, mask and keypoints.
  bool has_any(const Detections::Record& one) const {
    return one.has_bbox || !shape_.counts.empty() || !keypoints_.empty();
  }

  /// Throws Error for counts that are none.
  void add(const Detections::Record& one) {
    if (shape_.counts.empty())
      detections.add(one, keypoints_);
    else
      detections.add(one, shape_.counts, shape_.height, shape_.width, keypoints_);
  }

  /// Polygons say nothing of the image's size.
  void rasterize(std::int64_t image_id) {
    const Image* image = images_ ? images_->find_image(image_id) : nullptr;
    if (!image)
      throw Wrong{shape_.at,
                  fmt::format("polygons need the size of their image, and image {} is not known; "
                              "write run lengths instead",
                              image_id)};
    shape_.height = static_cast<std::uint32_t>(image->height);
    shape_.width = static_cast<std::uint32_t>(image->width);
    shape_.encoded = encode_counts(from_polygons(shape_.polygons, shape_.height, shape_.width));
    shape_.counts = shape_.encoded;
  }

  const Dataset* images_;
  DetectionShape shape_;
  std::vector<double> keypoints_;
};

/// Appends a number that reads back as the same bits.
void put(std::string& out, double value, std::size_t index, std::string_view field) {
  if (!std::isfinite(value))
    throw Error(
        fmt::format("detection {}: its {} is {}; JSON has no such number", index, field, value));
  fmt::format_to(std::back_inserter(out), "{}", value);
}

}  // namespace

std::optional<Detections> read_result_pieces(const InputFile& file, std::size_t piece_bytes,
                                             const Dataset* images) {
  constexpr std::size_t kHead = 4096;  // bytes searched for a bracket, or compared with white space
  const std::string head = text_at(file, 0, kHead);
  const std::size_t first = skip_space(head, 0);
  if (head.substr(first, 1) != "[") return {};
  Detections all;
  const auto last = read_list(file, "detections", first, piece_bytes, DetectionReader(images),
                              [&](const DetectionReader& part, std::size_t pieces) {
                                all.append(part.detections, pieces);
                              });
  if (!last) return {};
  const std::string rest = text_at(file, *last + 1, kHead);
  if (*last + 1 + rest.size() != file.size() || skip_space(rest, 0) != rest.size()) return {};
  return all;
}

Detections read_detections(const std::filesystem::path& json, const Dataset* images) {
  if (is_worth_pieces(json))
    if (auto detections = read_result_pieces(open_json(json, '['), kPieceBytes, images))
      return std::move(*detections);
  JsonText text(read_json(json, '['), json.string());
  DetectionReader reader(images);
  text.each_record("detections",
                   [&](json::object fields, const char* at) { reader.read(fields, at); });
  return std::move(reader.detections);
}

std::string result_text(const Detections& detections, std::size_t i) {
  const Detections::Record& one = detections[i];
  auto out = fmt::format("{{\"image_id\":{},\"category_id\":{}", one.image_id, one.category_id);
  if (one.has_bbox) {
    out += ",\"bbox\":[";
    for (int k = 0; k < 4; ++k) {
      if (k > 0) out += ',';
      put(out, one.bbox[k], i, "box");
    }
    out += ']';
  }
  out += ",\"score\":";
  put(out, one.score, i, "score");
  if (one.mask != Detections::kNoMask) {
    const Detections::Mask& mask = detections.mask_of(one);
    fmt::format_to(std::back_inserter(out),
                   ",\"segmentation\":{{\"size\":[{},{}],\"counts\":", mask.extent.height,
                   mask.extent.width);
    out += '"';
    for (const char c : detections.counts(mask)) {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
    out += "\"}";
  }
  if (one.keypoints != Detections::kNoKeypoints) {
    out += ",\"keypoints\":[";
    for (bool first = true; const double value : detections.keypoints_of(one)) {
      if (!std::exchange(first, false)) out += ',';
      put(out, value, i, "keypoints");
    }
    out += ']';
  }
  return out + '}';
}

void write_detections(const std::filesystem::path& json, const Detections& detections) {
  std::string out = "[";
  for (std::size_t i = 0; i < detections.size(); ++i) {
    out += i == 0 ? "\n" : ",\n";
    out += result_text(detections, i);
  }
  out += "\n]\n";
  write_file_atomically(json, out);
}

}  // namespace millrace::coco
