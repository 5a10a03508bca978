#include "millrace/dataflow/stages/decode.h"

#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/stages/geometric.h"

namespace millrace {
namespace {

/// The sample's own bytes; they may come from a disk, so they are checked.
std::string_view checked(const EncodedImage& file, const std::string& path) {
  if (digest(file.bytes.data(), file.bytes.size()) != file.digest)
    throw DataError(path, "the image's bytes are damaged: their checksum is wrong");
  return file.bytes;
}

MILLRACE_REGISTER(
    register_stage<Decode>("reads and decodes the image: JPEG, PNG and what else OpenCV knows"));

}  // namespace

Sample Decode::operator()(Sample sample) const {
  if (!sample.image.empty()) return sample;
  const auto file = std::exchange(sample.encoded, {});
  const auto owned = file.owner ? std::string() : read_image_file(sample.path);
  const auto bytes = file.owner ? checked(file, sample.path) : std::string_view(owned);
  std::optional<cv::Size> annotated;
  if (sample.width > 0) annotated.emplace(sample.width, sample.height);
  const auto enough = short_side > 0 && annotated
                          ? shortest_edge_size(*annotated, short_side, max_side)
                          : cv::Size();
  sample.image = {decode_rgb(bytes, sample.path, annotated, strict, enough),
                  annotated.value_or(cv::Size())};
  sample.width = sample.image.size().width;
  sample.height = sample.image.size().height;
  return sample;
}

}  // namespace millrace
