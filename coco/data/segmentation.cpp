#include "millrace/coco/data/segmentation.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "millrace/base/errors.h"

namespace millrace::coco {
namespace {

ShapeRef read_polygons(JsonReader& json, Records& records) {
  ShapeRef shape{records.polygon_ends.size(), 0, ShapeKind::polygons};
  json.each([&] {
    const auto name = [&] { return fmt::format("polygon {}", shape.count); };
    if (json.next() != '[') throw Wrong{json.at(), fmt::format("'{}' is not an array", name())};
    const char* at = json.at();
    const std::size_t begin = records.coordinates.size();
    if (!json.numbers(records.coordinates))
      throw Wrong{json.at(),
                  fmt::format("'{}' contains a value that is not a finite number", name())};
    const std::size_t count = records.coordinates.size() - begin;
    if (count < 6 || count % 2 == 1)
      throw Wrong{at, fmt::format("{} has {} numbers; expected x y of three or more points", name(),
                                  count)};
    records.polygon_ends.push_back(records.coordinates.size());
    ++shape.count;
  });
  return shape.count > 0 ? shape : ShapeRef{};
}

std::uint32_t side(double value, const char* at) {
  if (value < 0 || value > UINT32_MAX || value != std::floor(value))
    throw Wrong{at, "'size' is not a height and a width in pixels"};
  return static_cast<std::uint32_t>(value);
}

Rle from_runs(const std::vector<std::int64_t>& runs, std::uint32_t height, std::uint32_t width) {
  Rle mask{height, width, {}};
  mask.counts.reserve(runs.size());
  const std::uint64_t pixels = std::uint64_t{height} * width;
  std::uint64_t sum = 0;
  for (const std::int64_t run : runs) {
    if (run < 0) throw Error("counts: negative run length");
    sum += static_cast<std::uint64_t>(run);
    if (sum > pixels) break;
    mask.counts.push_back(static_cast<std::uint32_t>(run));
  }
  if (sum != pixels || pixels > UINT32_MAX)
    throw Error(fmt::format("counts: the runs do not add up to {} x {} pixels", height, width));
  return mask;
}

/// Run lengths as written in the file.
struct RleFields {
  std::uint32_t height = 0, width = 0;
  const char* counts_at = nullptr;
  std::optional<std::string_view> compressed;
  std::vector<std::int64_t> runs;

  explicit RleFields(JsonReader& json) : counts_at(json.at()) {
    double size[2] = {-1, -1};
    const char* size_at = counts_at;
    json.fields(required("size",
                         [&] {
                           json.next();
                           size_at = json.at();
                           if (!json.numbers_if_any(size))
                             throw Wrong{size_at, "'size' is empty; expected 2 numbers"};
                         }),
                required("counts", [&] {
                  const char first = json.next();
                  counts_at = json.at();
                  if (first == '"')
                    compressed = json.counts();
                  else
                    json.each([&] { runs.push_back(json.integer()); });
                }));
    height = side(size[0], size_at), width = side(size[1], size_at);
  }

  Rle mask() const {
    try {
      return compressed ? decode_counts(*compressed, height, width)
                        : from_runs(runs, height, width);
    } catch (const Error& problem) {
      throw Wrong{counts_at, problem.what(), "counts"};
    }
  }
};

void expect_null(JsonReader& json) {
  if (!json.take_null())
    throw Wrong{json.at(), "'segmentation' is neither polygons nor run lengths"};
}

double polygon_area(std::span<const double> polygon) {
  double doubled = 0;
  for (std::size_t i = 0, last = polygon.size() - 2; i < polygon.size(); last = i, i += 2)
    doubled += polygon[last] * polygon[i + 1] - polygon[i] * polygon[last + 1];
  return std::abs(doubled) / 2;
}

}  // namespace

bool read_box(JsonReader& json, std::span<double, 4> box) {
  json.next();
  const char* at = json.at();
  const bool any = json.numbers_if_any(box);
  if (any && (box[2] < 0 || box[3] < 0))
    throw Wrong{at, fmt::format("'bbox' has a negative size: {} x {}", box[2], box[3])};
  return any;
}

std::uint16_t read_keypoints(JsonReader& json, std::vector<double>& to) {
  if (json.take_null()) return 0;
  const char* at = json.at();
  const std::size_t begin = to.size();
  if (!json.numbers(to)) json.wrong("a finite number");
  const std::size_t count = to.size() - begin;
  if (count % 3 != 0 || count / 3 > UINT16_MAX)
    throw Wrong{at, fmt::format("'keypoints' has {} numbers; expected x y v of up to {} points",
                                count, UINT16_MAX)};
  return static_cast<std::uint16_t>(count / 3);
}

ShapeRef read_segmentation(JsonReader& json, Records& records) {
  const char first = json.next();
  if (first == '[') return read_polygons(json, records);
  if (first == '{') return records.add_mask(RleFields(json).mask());
  expect_null(json);
  return {};
}

void read_segmentation(JsonReader& json, DetectionShape& shape) {
  const char first = json.next();
  shape.at = json.at();
  shape.counts = {};
  shape.polygons.clear();
  if (first == '{') {
    const RleFields fields(json);
    shape.at = fields.counts_at;
    shape.height = fields.height, shape.width = fields.width;
    if (!fields.compressed) shape.encoded = encode_counts(fields.mask());
    shape.counts = fields.compressed.value_or(shape.encoded);
  } else if (first == '[') {
    Records aside;
    read_polygons(json, aside);
    for (std::size_t begin = 0; const std::size_t end : aside.polygon_ends) {
      shape.polygons.emplace_back(aside.coordinates.begin() + static_cast<std::ptrdiff_t>(begin),
                                  aside.coordinates.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
  } else {
    expect_null(json);
  }
}

double shape_area(const Segmentation& shape) {
  if (const auto* mask = std::get_if<Rle>(&shape)) return static_cast<double>(area(*mask));
  double sum = 0;
  if (const auto* polygons = std::get_if<std::vector<Polygon>>(&shape))
    for (const auto& polygon : *polygons) sum += polygon_area(polygon);
  return sum;
}

double shape_area(const ShapeRef& shape, const Records& records) {
  double sum = 0;
  if (shape.kind == ShapeKind::mask) {  // every second run is inside the mask
    for (std::size_t i = 3; i < shape.count; i += 2) sum += records.runs[shape.first + i];
    return sum;
  }
  for (std::size_t k = shape.first; k < shape.first + shape.count; ++k) {
    const std::uint64_t begin = k == 0 ? 0 : records.polygon_ends[k - 1];
    sum += polygon_area(
        std::span(records.coordinates).subspan(begin, records.polygon_ends[k] - begin));
  }
  return sum;
}

void read_annotation(JsonReader& json, Records& records) {
  Annotation one;
  bool has_area = false, has_number = false;
  json.fields(required("id", [&] { one.id = json.integer(); }),
              required("image_id", [&] { one.image_id = json.integer(); }),
              required("category_id", [&] { one.category_id = json.integer(); }),
              required("bbox",
                       [&] {
                         json.next();
                         const char* at = json.at();
                         if (!read_box(json, one.bbox))
                           throw Wrong{at, "'bbox' is empty; expected 4 numbers"};
                       }),
              optional("area",
                       [&] {
                         one.area = json.number();
                         has_area = true;
                       }),
              optional("iscrowd", [&] { one.crowd = json.flag(); }),
              optional("ignore", [&] { one.ignored = !json.take_null() && json.flag(); }),
              optional("segmentation", [&] { one.shape = read_segmentation(json, records); }),
              optional("keypoints",
                       [&] {
                         const std::size_t begin = records.keypoints.size();
                         one.keypoint_count = read_keypoints(json, records.keypoints);
                         if (one.keypoint_count > 0) one.keypoints = begin;
                       }),
              optional("num_keypoints", [&] {
                if (json.take_null()) return;
                one.num_keypoints = static_cast<std::int32_t>(json.integer());
                has_number = true;
              }));
  if (!has_number)
    for (std::size_t i = 0; i < one.keypoint_count; ++i)
      one.num_keypoints += records.keypoints[one.keypoints + 3 * i + 2] > 0;
  if (!has_area) {
    const bool box_only = one.shape.kind == ShapeKind::none;
    one.area = box_only ? one.bbox[2] * one.bbox[3] : shape_area(one.shape, records);
  }
  records.annotations.push_back(one);
}

}  // namespace millrace::coco
