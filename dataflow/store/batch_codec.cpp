#include "millrace/dataflow/store/batch_codec.h"

#include <tuple>

#include "millrace/dataflow/store/codec_pieces.h"

namespace millrace {
namespace {

using namespace codec;

constexpr int kBatchSchema = 1;

void pack_image(Packer& out, const ImageInfo& image, const Instances& objects) {
  out.pack_map(4 + kObjectMembers);
  out.pack("id").pack(image.image_id);
  pack_pair(out, "original", image.original_width, image.original_height);
  pack_pair(out, "size", image.width, image.height);
  pack_pair(out, "scale", image.scale_x, image.scale_y);
  pack_objects(out, objects);
}

void read_image(const Fields& fields, Batch& batch) {
  ImageInfo image;
  image.image_id = fields.value<std::int64_t>("id");
  std::tie(image.original_width, image.original_height) = read_size(fields, "original", 0);
  std::tie(image.width, image.height) = read_size(fields, "size", 0);
  require(image.width <= batch.width && image.height <= batch.height,
          "an image is larger than the batch");
  std::tie(image.scale_x, image.scale_y) = read_scale(fields);
  batch.images.push_back(image);
  batch.objects.push_back(read_objects(fields));
}

Batch read_batch(const Fields& fields, const Frame& pixels) {
  check_schema(fields, kBatchSchema);
  Batch batch;
  std::tie(batch.width, batch.height) = read_size(fields, "size", 0);
  const auto& images = fields.at("images");
  require(images.type == msgpack::type::ARRAY, "'images' is not a list");
  for (const auto& image : std::span(images.via.array.ptr, images.via.array.size))
    read_image(Fields(image), batch);
  if (pixels.size != batch.bytes())
    throw Wrong{fmt::format("has {} bytes of pixels, expected {}", pixels.size, batch.bytes())};
  batch.pixels = pixels.bytes;
  require(digest(batch) == fields.value<std::uint64_t>("digest"), "checksum mismatch");
  return batch;
}

}  // namespace

std::string encode_header(const Batch& batch) {
  msgpack::sbuffer bytes;
  Packer out(bytes);
  out.pack_map(4);
  out.pack("schema").pack(kBatchSchema);
  out.pack("digest").pack(digest(batch));
  pack_pair(out, "size", batch.width, batch.height);
  out.pack("images").pack_array(static_cast<std::uint32_t>(batch.size()));
  for (std::size_t i = 0; i < batch.size(); ++i) pack_image(out, batch.images[i], batch.objects[i]);
  return {bytes.data(), bytes.size()};
}

Batch decode_batch(std::string_view header, const Frame& pixels, const std::string& where) {
  Batch batch;
  unpack(header, where, "batch",
         [&](const msgpack::object& object) { batch = read_batch(Fields(object), pixels); });
  return batch;
}

}  // namespace millrace
