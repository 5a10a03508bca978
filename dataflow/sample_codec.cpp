#include "dataflow/sample_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <msgpack.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "base/errors.h"

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little,
              "rows of numbers are written as they lie");

constexpr int kSchema = 1;
constexpr std::int64_t kMostPixels = 1 << 20;  // of a side
constexpr std::size_t kMostDepth = 8;

using Packer = msgpack::packer<msgpack::sbuffer>;

template <class T>
void pack_row(Packer& out, const T* values, std::size_t count) {
  const auto bytes = static_cast<std::uint32_t>(count * sizeof(T));
  out.pack_bin(bytes);
  out.pack_bin_body(reinterpret_cast<const char*>(values), bytes);
}
template <class T>
void pack_row(Packer& out, const std::vector<T>& values) {
  pack_row(out, values.data(), values.size());
}

template <class T>
void pack_pair(Packer& out, const char* key, T first, T second) {
  out.pack(key);
  out.pack_array(2).pack(first).pack(second);
}

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

void pack_pixels(Packer& out, const LazyImage& image) {
  if (image.empty()) {
    out.pack_nil();
    return;
  }
  const auto held = image.held().isContinuous() ? image.held() : image.held().clone();
  out.pack_map(4);
  pack_pair(out, "held", held.cols, held.rows);
  out.pack("rgb");
  pack_row(out, held.data, held.total() * held.elemSize());
  out.pack("mirrored").pack(image.is_mirrored());
  pack_pair(out, "size", image.size().width, image.size().height);
}

void pack_file(Packer& out, const EncodedImage& file) {
  if (!file.owner) {
    out.pack_nil();
    return;
  }
  out.pack_map(2);
  out.pack("digest").pack(file.digest);
  out.pack("bytes");
  pack_row(out, file.bytes.data(), file.bytes.size());
}

/// What is wrong with the bytes.
struct Wrong {
  std::string why;
};

void require(bool holds, std::string_view why) {
  if (!holds) throw Wrong{std::string(why)};
}

/// A map's members by name.
class Fields {
 public:
  explicit Fields(const msgpack::object& object) {
    require(object.type == msgpack::type::MAP, "a map is wanted");
    members_ = {object.via.map.ptr, object.via.map.size};
  }

  const msgpack::object& at(std::string_view key) const {
    for (const auto& [name, value] : members_)
      if (name.type == msgpack::type::STR &&
          std::string_view(name.via.str.ptr, name.via.str.size) == key)
        return value;
    throw Wrong{fmt::format("'{}' is missing", key)};
  }

  /// A value that a T holds.
  template <class T>
  T value(std::string_view key) const {
    return as<T>(at(key), key);
  }

  template <class T>
  std::pair<T, T> pair(std::string_view key) const {
    const auto& object = at(key);
    if (object.type != msgpack::type::ARRAY || object.via.array.size != 2)
      throw Wrong{fmt::format("'{}' is not a pair", key)};
    return {as<T>(object.via.array.ptr[0], key), as<T>(object.via.array.ptr[1], key)};
  }

  std::string_view bytes(std::string_view key) const {
    const auto& object = at(key);
    if (object.type != msgpack::type::BIN) throw Wrong{fmt::format("'{}' is not binary", key)};
    return {object.via.bin.ptr, object.via.bin.size};
  }

  template <class T>
  std::vector<T> row(std::string_view key) const {
    return values<T>(bytes(key), key);
  }

  template <class T>
  static std::vector<T> values(std::string_view bytes, std::string_view key) {
    if (bytes.size() % sizeof(T) != 0)
      throw Wrong{fmt::format("'{}' is {} bytes, no whole number of values", key, bytes.size())};
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

 private:
  template <class T>
  static T as(const msgpack::object& object, std::string_view key) {
    try {
      return object.as<T>();
    } catch (const msgpack::type_error&) {
      throw Wrong{fmt::format("'{}' has a value of another kind or out of range", key)};
    }
  }

  std::span<const msgpack::object_kv> members_;
};

bool all_finite(const auto& values) {
  return std::ranges::all_of(values, [](auto value) { return std::isfinite(value); });
}

coco::Rle read_mask(const Fields& fields) {
  coco::Rle mask;
  std::tie(mask.height, mask.width) = fields.pair<std::uint32_t>("size");
  mask.counts = fields.row<std::uint32_t>("counts");
  require(mask.height <= kMostPixels && mask.width <= kMostPixels, "a mask is too large");
  const auto covered = std::accumulate(mask.counts.begin(), mask.counts.end(), std::uint64_t{0});
  require(covered == std::uint64_t{mask.height} * mask.width, "the runs of a mask do not fill it");
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
  require(std::ranges::all_of(objects.classes, [](auto c) { return c >= 0; }),
          "a class is negative");
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
          "its objects have different numbers of boxes, classes, flags and shapes");
  return objects;
}

cv::Size read_size(const Fields& fields, std::string_view key) {
  const auto [width, height] = fields.pair<std::int32_t>(key);
  require(width > 0 && height > 0 && width <= kMostPixels && height <= kMostPixels,
          "an image's size makes no sense");
  return {width, height};
}

LazyImage read_pixels(const msgpack::object& object) {
  if (object.is_nil()) return {};
  const Fields fields(object);
  const auto held = read_size(fields, "held");
  const auto rgb = fields.bytes("rgb");
  require(rgb.size() == std::size_t{3} * static_cast<std::size_t>(held.width) *
                            static_cast<std::size_t>(held.height),
          "the pixels do not fill the image");
  cv::Mat pixels(held, CV_8UC3);
  std::memcpy(pixels.data, rgb.data(), rgb.size());
  LazyImage image(pixels, read_size(fields, "size"));
  if (fields.value<bool>("mirrored")) image.mirror();
  return image;
}

EncodedImage read_file_bytes(const msgpack::object& object) {
  if (object.is_nil()) return {};
  const Fields fields(object);
  const auto copy = std::make_shared<const std::string>(fields.bytes("bytes"));
  return {copy, *copy, fields.value<std::uint64_t>("digest")};
}

Sample read_sample(const msgpack::object& object) {
  const Fields fields(object);
  const auto schema = fields.value<std::int64_t>("schema");
  if (schema != kSchema)
    throw Wrong{fmt::format("is of schema {}, but this program reads {}", schema, kSchema)};
  Sample sample;
  sample.image_id = fields.value<std::int64_t>("id");
  sample.path = fields.value<std::string>("path");
  std::tie(sample.width, sample.height) = fields.pair<std::int32_t>("size");
  require(sample.width >= 0 && sample.height >= 0 && sample.width <= kMostPixels &&
              sample.height <= kMostPixels && (sample.width == 0) == (sample.height == 0),
          "the image's size makes no sense");
  std::tie(sample.scale_x, sample.scale_y) = fields.pair<float>("scale");
  require(std::isfinite(sample.scale_x) && std::isfinite(sample.scale_y) && sample.scale_x > 0 &&
              sample.scale_y > 0,
          "the scale makes no sense");
  sample.objects = read_objects(fields);
  sample.image = read_pixels(fields.at("pixels"));
  sample.encoded = read_file_bytes(fields.at("file"));
  return sample;
}

}  // namespace

std::string encode(const Sample& sample) {
  msgpack::sbuffer bytes;
  Packer out(bytes);
  const auto& objects = sample.objects;
  out.pack_map(11);
  out.pack("schema").pack(kSchema);
  out.pack("id").pack(sample.image_id);
  out.pack("path").pack(sample.path);
  pack_pair(out, "size", sample.width, sample.height);
  pack_pair(out, "scale", sample.scale_x, sample.scale_y);
  out.pack("boxes");
  pack_row(out, objects.boxes);
  out.pack("classes");
  pack_row(out, objects.classes);
  out.pack("crowd");
  pack_row(out, objects.crowd);
  out.pack("shapes").pack_array(static_cast<std::uint32_t>(objects.segmentations.size()));
  for (const auto& shape : objects.segmentations) pack_shape(out, shape);
  out.pack("pixels");
  pack_pixels(out, sample.image);
  out.pack("file");
  pack_file(out, sample.encoded);
  return {bytes.data(), bytes.size()};
}

Sample decode_sample(std::string_view bytes, const std::string& where) {
  const auto most = bytes.size();  // of anything that they could hold
  const msgpack::unpack_limit limit(most, most, most, most, most, kMostDepth);
  const auto point_into_bytes = [](msgpack::type::object_type, std::size_t, void*) { return true; };
  try {
    std::size_t end = 0;
    bool points = false;
    const auto handle =
        msgpack::unpack(bytes.data(), bytes.size(), end, points, point_into_bytes, nullptr, limit);
    require(end == bytes.size(), "bytes follow behind the sample");
    return read_sample(handle.get());
  } catch (const msgpack::unpack_error&) {
    throw DataError(where, "is no sample: it is cut short or not msgpack");
  } catch (const Wrong& wrong) {
    throw DataError(where, "is no sample: " + wrong.why);
  }
}

}  // namespace millrace
