#include "millrace/dataflow/store/codec_pieces.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "millrace/base/errors.h"

namespace millrace::codec {
namespace {

constexpr std::size_t kMostDepth = 8;

void pack_shape(Packer& out, const coco::Segmentation& shape) {
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
    out.pack_array(static_cast<std::uint32_t>(polygons->size()));
    for (const auto& polygon : *polygons) pack_row(out, polygon);
  } else if (const auto* mask = std::get_if<coco::Rle>(&shape)) {
    out.pack_map(2);
    pack_pair(out, "size", mask->height, mask->width);
    out.pack("counts");
    pack_row(out, mask->counts);
  } else {
    out.pack_nil();
  }
}

bool all_finite(const auto& values) {
  return std::ranges::all_of(values, [](auto value) { return std::isfinite(value); });
}

coco::Rle read_mask(const Fields& fields) {
  coco::Rle mask;
  std::tie(mask.height, mask.width) = fields.pair<std::uint32_t>("size");
  mask.counts = fields.row<std::uint32_t>("counts");
  require(mask.height <= kMostPixels && mask.width <= kMostPixels, "a mask is too large");
  const auto covered = std::accumulate(mask.counts.begin(), mask.counts.end(), std::uint64_t{0});
  require(covered == std::uint64_t{mask.height} * mask.width, "the runs of a mask do not cover it");
  return mask;
}

coco::Segmentation read_shape(const msgpack::object& object) {
  if (object.is_nil()) return {};
  if (object.type == msgpack::type::MAP) return read_mask(Fields(object));
  require(object.type == msgpack::type::ARRAY, "a shape is neither polygons nor a mask");
  std::vector<coco::Polygon> polygons;
  for (const auto& part : std::span(object.via.array.ptr, object.via.array.size)) {
    require(part.type == msgpack::type::BIN, "a polygon is not binary");
    auto points = Fields::values<double>({part.via.bin.ptr, part.via.bin.size}, "polygon");
    require(points.size() >= 6 && points.size() % 2 == 0 && all_finite(points),
            "a polygon is not three or more finite points");
    polygons.push_back(std::move(points));
  }
  return polygons;
}

}  // namespace

void check_schema(const Fields& fields, std::int64_t schema) {
  if (const auto own = fields.value<std::int64_t>("schema"); own != schema)
    throw Wrong{fmt::format("schema {} is not supported; this program reads {}", own, schema)};
}

std::pair<std::int32_t, std::int32_t> read_size(const Fields& fields, std::string_view key,
                                                std::int32_t least) {
  const auto size = fields.pair<std::int32_t>(key);
  const auto [low, high] = std::minmax(size.first, size.second);
  if (low < least || high > kMostPixels) throw Wrong{fmt::format("'{}' is invalid", key)};
  return size;
}

std::pair<float, float> read_scale(const Fields& fields) {
  const auto [x, y] = fields.pair<float>("scale");
  require(std::isfinite(x) && std::isfinite(y) && x > 0 && y > 0, "the scale is invalid");
  return {x, y};
}

Instances read_objects(const Fields& fields) {
  Instances objects;
  const auto corners = fields.row<float>("boxes");
  require(corners.size() % 4 == 0 && all_finite(corners), "a box is not four finite numbers");
  for (std::size_t i = 0; i < corners.size(); i += 4) {
    const Box box{corners[i], corners[i + 1], corners[i + 2], corners[i + 3]};
    require(box.x1 <= box.x2 && box.y1 <= box.y2, "a box ends before it begins");
    objects.boxes.push_back(box);
  }
  objects.classes = fields.row<std::int32_t>("classes");
  require(std::ranges::all_of(objects.classes, [](auto c) { return c >= 0; }), "negative class");
  objects.crowd = fields.row<std::uint8_t>("crowd");
  require(std::ranges::all_of(objects.crowd, [](auto c) { return c <= 1; }),
          "a crowd flag is not 0 or 1");
  const auto& shapes = fields.at("shapes");
  require(shapes.type == msgpack::type::ARRAY, "'shapes' is not a list");
  for (const auto& shape : std::span(shapes.via.array.ptr, shapes.via.array.size))
    objects.segmentations.push_back(read_shape(shape));
  const auto count = objects.size();
  require(objects.classes.size() == count && objects.crowd.size() == count &&
              objects.segmentations.size() == count,
          "different numbers of boxes, classes, flags and shapes");
  return objects;
}

void require(bool holds, std::string_view why) {
  if (!holds) throw Wrong{std::string(why)};
}

void pack_objects(Packer& out, const Instances& objects) {
  out.pack("boxes");
  pack_row(out, objects.boxes);
  out.pack("classes");
  pack_row(out, objects.classes);
  out.pack("crowd");
  pack_row(out, objects.crowd);
  out.pack("shapes").pack_array(static_cast<std::uint32_t>(objects.segmentations.size()));
  for (const auto& shape : objects.segmentations) pack_shape(out, shape);
}

void unpack(std::string_view bytes, const std::string& where, std::string_view what,
            const std::function<void(const msgpack::object&)>& read) {
  const auto most = bytes.size();  // maximum count of elements of any kind
  const msgpack::unpack_limit limit(most, most, most, most, most, kMostDepth);
  const auto point_into_bytes = [](msgpack::type::object_type, std::size_t, void*) { return true; };
  const auto wrong = [&](std::string_view why) {
    return DataError(where, fmt::format("is not a valid {}: {}", what, why));
  };
  try {
    std::size_t end = 0;
    bool points = false;
    const auto handle =
        msgpack::unpack(bytes.data(), bytes.size(), end, points, point_into_bytes, nullptr, limit);
    if (end != bytes.size()) throw wrong(fmt::format("bytes follow the {}", what));
    read(handle.get());
  } catch (const msgpack::unpack_error&) {
    throw wrong("truncated or not msgpack");
  } catch (const Wrong& problem) {
    throw wrong(problem.why);
  }
}

}  // namespace millrace::codec
