#include "millrace/dataflow/store/sample_codec.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/store/codec_pieces.h"

namespace millrace {
namespace {

using namespace codec;

constexpr int kSchema = 1;

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
  out.pack_map(7 + kObjectMembers);
  out.pack("schema").pack(kSchema);
  out.pack("id").pack(sample.image_id);
  out.pack("path").pack(sample.path);
  pack_pair(out, "size", sample.width, sample.height);
  pack_pair(out, "scale", sample.scale_x, sample.scale_y);
  pack_objects(out, sample.objects);
  out.pack("pixels");
  pack_pixels(out, sample.image);
  out.pack("file");
  pack_file(out, sample.encoded);
  return {bytes.data(), bytes.size()};
}

Sample decode_sample(std::string_view bytes, const std::string& where) {
  Sample sample;
  unpack(bytes, where, "sample",
         [&](const msgpack::object& object) { sample = read_sample(object); });
  return sample;
}

}  // namespace millrace
