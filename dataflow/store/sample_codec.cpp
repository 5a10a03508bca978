#include "millrace/dataflow/store/sample_codec.h"

#include <cstring>
#include <memory>
#include <tuple>

#include "millrace/dataflow/store/codec_pieces.h"

namespace millrace {
namespace {

using namespace codec;

constexpr int kSampleSchema = 1;

void pack_pixels(Packer& out, const LazyImage& image) {
  if (image.empty()) {
    out.pack_nil();
    return;
  }
  const auto held =
      image.stored_pixels().isContinuous() ? image.stored_pixels() : image.stored_pixels().clone();
  const bool pillow = image.resampling() == Resampling::pillow;
  out.pack_map(pillow ? 5 : 4);
  pack_pair(out, "held", held.cols, held.rows);
  out.pack("rgb");
  pack_row(out, held.data, held.total() * held.elemSize());
  out.pack("mirrored").pack(image.is_mirrored());
  pack_pair(out, "size", image.size().width, image.size().height);
  if (pillow) out.pack("pillow").pack(true);
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

LazyImage read_pixels(const msgpack::object& object) {
  if (object.is_nil()) return {};
  const Fields fields(object);
  const auto [held_width, held_height] = read_size(fields, "held", 1);
  const auto [width, height] = read_size(fields, "size", 1);
  const auto rgb = fields.bytes("rgb");
  require(std::ssize(rgb) == std::int64_t{3} * held_width * held_height,
          "the pixels do not fill the image");
  cv::Mat pixels(held_height, held_width, CV_8UC3);
  std::memcpy(pixels.data, rgb.data(), rgb.size());
  LazyImage image(pixels, {width, height});
  if (fields.find("pillow") && fields.value<bool>("pillow"))
    image.resize({width, height}, Resampling::pillow);
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
  check_schema(fields, kSampleSchema);
  Sample sample;
  sample.image_id = fields.value<std::int64_t>("id");
  sample.path = fields.value<std::string>("path");
  std::tie(sample.width, sample.height) = read_size(fields, "size", 0);
  require((sample.width == 0) == (sample.height == 0), "'size' is invalid");
  std::tie(sample.scale_x, sample.scale_y) = read_scale(fields);
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
  out.pack("schema").pack(kSampleSchema);
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
