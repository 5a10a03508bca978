#include "millrace/coco/data/segmentation.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "millrace/base/errors.h"

namespace millrace::coco {
namespace {

ShapeRef read_polygons(json::array parts, Records& records) {
  ShapeRef shape{records.polygon_ends.size(), 0, ShapeKind::polygons};
  for (json::value part : parts) {
    const auto field = [&] { return fmt::format("polygon {}", shape.count); };
    const char* at = place(part);
    if (*at != '[') throw Wrong{at, fmt::format("'{}' is not an array", field())};
    const std::size_t begin = records.coordinates.size();
    for (json::value coordinate : part.get_array()) {
      double read = 0;
      if (!read_number(coordinate, read))
        throw Wrong{place(coordinate), fmt::format("'{}' holds no finite number here", field())};
      records.coordinates.push_back(read);
    }
    const std::size_t count = records.coordinates.size() - begin;
    if (count < 6 || count % 2 == 1)
      throw Wrong{at, fmt::format("{} has {} numbers; three or more points as x y are needed",
                                  field(), count)};
    records.polygon_ends.push_back(records.coordinates.size());
    ++shape.count;
  }
  return shape.count > 0 ? shape : ShapeRef{};
}

std::uint32_t side(double value, const char* at) {
  if (value < 0 || value > UINT32_MAX || value != std::floor(value))
    throw Wrong{at, "'size' is not two sizes in pixels"};
  return static_cast<std::uint32_t>(value);
}

Rle from_runs(const std::vector<std::int64_t>& runs, std::uint32_t height, std::uint32_t width) {
  Rle mask{height, width, {}};
  mask.counts.reserve(runs.size());
  const std::uint64_t pixels = std::uint64_t{height} * width;
  std::uint64_t sum = 0;
  for (const std::int64_t run : runs) {
    if (run < 0) throw Error("counts: a run is negative");
    sum += static_cast<std::uint64_t>(run);
    if (sum > pixels) break;
    mask.counts.push_back(static_cast<std::uint32_t>(run));
  }
  if (sum != pixels || pixels > UINT32_MAX)
    throw Error(fmt::format("counts: the runs do not add up to {} x {} pixels", height, width));
  return mask;
}

/// Run lengths as they are written.
struct RleFields {
  std::uint32_t height = 0, width = 0;
  const char* counts_at = nullptr;
  std::optional<std::string_view> compressed;
  std::vector<std::int64_t> runs;

  RleFields() = default;
  RleFields(json::object fields, const char* at) : counts_at(at) {
    double size[2] = {-1, -1};
    const char* size_at = at;
    read_fields(fields, at,
                required("size",
                         [&](json::value value) {
                           size_at = place(value);
                           numbers(value, "size", size);
                         }),
                required("counts", [&](json::value value) {
                  counts_at = place(value);
                  if (*counts_at == '"')
                    compressed = text(value, "counts");
                  else
                    for (json::value run : array(value, "counts"))
                      runs.push_back(integer(run, "counts"));
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

/// Compressed counts lie in the text or in `spare`.
bool read_plain_runs(PlainJson& text, RleFields& to, std::string& spare) {
  std::int64_t height = 0, width = 0;
  const bool read =
      text.fields(required("size",
                           [&] {
                             return text.take('[') && text.integer(height) && text.take(',') &&
                                    text.integer(width) && text.take(']');
                           }),
                  required("counts", [&] {
                    if (text.next() == '"') {
                      to.compressed.emplace();
                      return text.counts(*to.compressed, spare);
                    }
                    return text.each([&] { return text.integer(to.runs.emplace_back()); });
                  }));
  const auto is_side = [](std::int64_t side) { return side >= 0 && side <= UINT32_MAX; };
  to.height = static_cast<std::uint32_t>(height), to.width = static_cast<std::uint32_t>(width);
  return read && is_side(height) && is_side(width);
}

void expect_null(json::value value) {
  const char* at = place(value);
  if (*at != 'n' || !value.is_null())
    throw Wrong{at, "'segmentation' is neither polygons nor run lengths"};
}

double polygon_area(std::span<const double> polygon) {
  double doubled = 0;
  for (std::size_t i = 0, last = polygon.size() - 2; i < polygon.size(); last = i, i += 2)
    doubled += polygon[last] * polygon[i + 1] - polygon[i] * polygon[last + 1];
  return std::abs(doubled) / 2;
}

}  // namespace

bool read_box(json::value value, std::span<double, 4> box) {
  const char* at = place(value);
  const bool any = numbers_if_any(value, "bbox", box);
  if (any && (box[2] < 0 || box[3] < 0))
    throw Wrong{at, fmt::format("'bbox' has a negative size: {} x {}", box[2], box[3])};
  return any;
}

std::uint16_t read_keypoints(json::value value, std::vector<double>& to) {
  const char* at = place(value);
  if (*at == 'n' && value.is_null()) return 0;
  const std::size_t begin = to.size();
  for (json::value item : array(value, "keypoints")) {
    double read = 0;
    if (!read_number(item, read)) read = number(item, "keypoints");  // says what is wrong
    to.push_back(read);
  }
  const std::size_t count = to.size() - begin;
  if (count % 3 != 0 || count / 3 > UINT16_MAX)
    throw Wrong{at, fmt::format("'keypoints' has {} numbers; they are x y v of up to {} points",
                                count, UINT16_MAX)};
  return static_cast<std::uint16_t>(count / 3);
}

ShapeRef read_segmentation(json::value value, Records& records) {
  const char* at = place(value);
  if (*at == '[') return read_polygons(value.get_array(), records);
  if (*at == '{') return records.add_mask(RleFields(value.get_object(), at).mask());
  expect_null(value);
  return {};
}

void read_segmentation(json::value value, DetectionShape& shape) {
  shape.at = place(value);
  shape.counts = {};
  shape.polygons.clear();
  if (*shape.at == '{') {
    const RleFields fields(value.get_object(), shape.at);
    shape.at = fields.counts_at;
    shape.height = fields.height, shape.width = fields.width;
    if (!fields.compressed) shape.encoded = encode_counts(fields.mask());
    shape.counts = fields.compressed.value_or(shape.encoded);
  } else if (*shape.at == '[') {
    Records aside;
    read_polygons(value.get_array(), aside);
    for (std::size_t begin = 0; const std::size_t end : aside.polygon_ends) {
      shape.polygons.emplace_back(aside.coordinates.begin() + static_cast<std::ptrdiff_t>(begin),
                                  aside.coordinates.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
  } else {
    expect_null(value);
  }
}

bool read_plain_box(PlainJson& text, std::span<double, 4> box) {
  return text.numbers(box) && box[2] >= 0 && box[3] >= 0;
}

bool read_plain_keypoints(PlainJson& text, std::vector<double>& to, std::uint16_t& count) {
  const std::size_t begin = to.size();
  if (!text.numbers(to)) return false;
  const std::size_t numbers = to.size() - begin;
  count = static_cast<std::uint16_t>(numbers / 3);
  return numbers % 3 == 0 && numbers / 3 <= UINT16_MAX;
}

bool read_plain_segmentation(PlainJson& text, Records& records, ShapeRef& shape) {
  const char first = text.next();
  if (first == 'n') return text.take("null");
  if (first == '{') {
    RleFields fields;
    std::string spare;
    if (!read_plain_runs(text, fields, spare)) return false;
    shape = records.add_mask(fields.mask());
    return true;
  }
  ShapeRef polygons{records.polygon_ends.size(), 0, ShapeKind::polygons};
  const bool read = text.each([&] {
    const std::size_t begin = records.coordinates.size();
    if (!text.numbers(records.coordinates)) return false;
    const std::size_t count = records.coordinates.size() - begin;
    records.polygon_ends.push_back(records.coordinates.size());
    ++polygons.count;
    return count >= 6 && count % 2 == 0;
  });
  if (polygons.count > 0) shape = polygons;
  return read;
}

bool read_plain_segmentation(PlainJson& text, DetectionShape& shape) {
  RleFields fields;
  if (!read_plain_runs(text, fields, shape.encoded) || !fields.compressed) return false;
  shape.height = fields.height, shape.width = fields.width;
  shape.counts = *fields.compressed;
  return true;
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
  if (shape.kind == ShapeKind::mask) {  // every second run is inside
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

}  // namespace millrace::coco
