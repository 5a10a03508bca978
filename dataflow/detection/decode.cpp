#include "millrace/dataflow/detection/decode.h"

#include <algorithm>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/dataflow/image/image_file.h"

namespace millrace {

std::string_view checked_bytes(const EncodedImage& file, const std::string& path) {
  if (digest(file.bytes.data(), file.bytes.size()) != file.digest)
    throw DataError(path, "the image's bytes are damaged (checksum mismatch)");
  return file.bytes;
}

Sample Decode::operator()(Sample sample) const {
  if (!sample.image.empty()) return sample;
  const auto file = std::exchange(sample.encoded, {});
  const auto owned = file.owner ? std::string() : read_image_file(sample.path);
  const auto bytes = file.owner ? checked_bytes(file, sample.path) : std::string_view(owned);
  return decoded(std::move(sample), bytes);
}

Sample Decode::decoded(Sample sample, std::string_view bytes) const {
  std::optional<cv::Size> annotated;
  if (sample.width > 0) annotated.emplace(sample.width, sample.height);
  const auto enough = short_side > 0 && annotated
                          ? shortest_edge_size(*annotated, short_side, max_side)
                          : cv::Size();
  sample.image = {decode_rgb(bytes, sample.path, annotated, strict, enough, max_pixels),
                  annotated.value_or(cv::Size())};
  sample.width = sample.image.size().width;
  sample.height = sample.image.size().height;
  return sample;
}

Decode decode_for(const ResizeShortestEdge& resize, bool reduced) {
  if (!reduced || resize.style == ResizeStyle::detectron2) return {};
  const auto short_side = *std::ranges::max_element(resize.short_side);
  if (resize.style == ResizeStyle::square) return {.short_side = short_side};
  return {.short_side = short_side, .max_side = resize.max_side};
}

}  // namespace millrace
