#include <webp/decode.h>

#include <stdexcept>

#include "millrace/dataflow/image_readers/readers.h"

namespace millrace {

void read_webp(std::string_view bytes, const PictureRoom& room) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures head;
  if (WebPGetFeatures(data, bytes.size(), &head) != VP8_STATUS_OK)
    throw std::runtime_error("broken WebP: cannot read the header");
  if (head.has_animation)
    throw std::runtime_error("is an animated WebP; save one of its frames as an image");
  const auto width = static_cast<std::size_t>(head.width),
             height = static_cast<std::size_t>(head.height);
  auto* pixels = room(head.width, head.height);
  if (!WebPDecodeRGBInto(data, bytes.size(), pixels, width * height * 3, head.width * 3))
    throw std::runtime_error("broken WebP: cannot read the pixels");
}

}  // namespace millrace
