// Reads and writes results files, which are arrays of detections.
#include <fmt/format.h>

#include <cmath>
#include <map>
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

  void read(JsonReader& json) {
    Detections::Record one;
    const char* at = json.at();
    shape_.counts = {};
    shape_.polygons.clear();
    keypoints_.clear();
    json.fields(required("image_id", [&] { one.image_id = json.integer(); }),
                required("category_id", [&] { one.category_id = json.integer(); }),
                required("score", [&] { one.score = json.number(); }),
                optional("bbox", [&] { one.has_bbox = read_box(json, one.bbox); }),
                optional("segmentation", [&] { read_segmentation(json, shape_); }),
                optional("keypoints", [&] { read_keypoints(json, keypoints_); }));
    if (!shape_.polygons.empty()) rasterize(one.image_id);
    if (!one.has_bbox && shape_.counts.empty() && keypoints_.empty())
      throw Wrong{at, "'bbox', 'segmentation' and 'keypoints' are all missing"};
    if (shape_.counts.empty()) return detections.add(one, keypoints_);
    try {
      detections.add(one, shape_.counts, shape_.height, shape_.width, keypoints_);
    } catch (const Error& problem) {
      throw Wrong{shape_.at, problem.what()};
    }
  }

 private:
  /// Converts polygons to a mask with the size of their image.
  void rasterize(std::int64_t image_id) {
    const Image* image = images_ ? images_->find_image(image_id) : nullptr;
    if (!image)
      throw Wrong{shape_.at,
                  fmt::format("polygons need the size of their image, but image {} is unknown; "
                              "use run lengths instead",
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

/// Appends a number that reads back bitwise equal.
void put(std::string& out, double value, std::size_t index, std::string_view field) {
  if (!std::isfinite(value))
    throw Error(
        fmt::format("detection {}: {} is {}, which JSON cannot represent", index, field, value));
  out += fmt::format("{}", value);
}

/// Returns whether a detection can belong to this image.
bool fits(const Detections& found, const Detections::Record& one, const Image& image) {
  if (image.width == 0 || image.height == 0) return true;  // not recorded
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  if (one.mask != Detections::kNoMask) {
    const auto& extent = found.mask_of(one).extent;
    if (extent.width != width || extent.height != height) return false;
  }
  if (!one.has_bbox) return true;
  const double x = one.bbox[0] + one.bbox[2] / 2, y = one.bbox[1] + one.bbox[3] / 2;
  return x >= 0 && y >= 0 && x <= width && y <= height;
}

}  // namespace

std::optional<Detections> read_result_pieces(const InputFile& file, std::size_t piece_bytes,
                                             const Dataset* images) {
  // Bytes searched for the bracket, or checked for trailing white space.
  constexpr std::size_t kHead = 4096;
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
  const JsonText text(read_json(json, '['), json.string());
  DetectionReader reader(images);
  text.read('[', [&](JsonReader& document) {
    document.list("detections", [&] { reader.read(document); });
  });
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
    out += fmt::format(",\"segmentation\":{{\"size\":[{},{}],\"counts\":", mask.extent.height,
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

void require_fit(const Detections& found, const Dataset& truth, const std::string& file) {
  constexpr auto kAdvice =
      "`trainer predict --gt FILE` and `trainer eval --out FILE` write detections with the ids of "
      "FILE";
  std::size_t unknown = 0;
  std::map<std::int64_t, bool> fitting;  // by id of known images
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& one = found[i];
    if (const auto* image = truth.find_image(one.image_id))
      fitting.try_emplace(one.image_id, true).first->second &= fits(found, one, *image);
    else
      ++unknown;
  }
  if (2 * unknown > found.size())
    throw Error(fmt::format("{}: {} of {} detections belong to images that are not in {}; {}", file,
                            unknown, found.size(), truth.source, kAdvice));
  std::size_t others = 0;
  for (const auto& [id, is_fitting] : fitting) others += !is_fitting;
  if (2 * others > fitting.size())
    throw Error(
        fmt::format("{}: in {} of {} images, detections do not fit the image size in {}, so they "
                    "probably belong to other images; {}",
                    file, others, fitting.size(), truth.source, kAdvice));
}

}  // namespace millrace::coco
