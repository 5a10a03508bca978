#include "millrace/dataflow/sources/photos.h"

#include <exception>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/dataflow/image/image_file.h"

namespace millrace {
namespace {

/// The size of a picture that has missing or damaged data; empty: there is none.
cv::Size size_of_damaged(const std::string& file, std::int64_t max_pixels) try {
  return decode_rgb(read_image_file(file), file, {}, /*strict=*/false, {}, max_pixels).size();
} catch (const std::exception&) {
  return {};
}

}  // namespace

Sample Photos::operator[](std::int64_t index) const {
  return {.image_id = index, .path = file(index).string()};
}

Sample Photos::decoded(Sample sample) const {
  const auto index = sample.image_id;
  Photo photo;
  try {
    const auto bytes = std::make_shared<const std::string>(read_image_file(sample.path));
    if (const auto size = upright_size(*bytes, sample.path, decode_.max_pixels)) {
      sample.width = size->width;
      sample.height = size->height;
    }
    sample.encoded = {bytes, *bytes, digest(*bytes)};
    sample = decode_(std::move(sample));
    photo.size = {sample.width, sample.height};
  } catch (const std::exception& problem) {  // OpenCV's, too
    sample = (*this)[index];
    photo = {size_of_damaged(sample.path, decode_.max_pixels), problem.what()};
  }
  const std::scoped_lock lock(mutex_);
  outcomes_[index] = std::move(photo);
  return sample;
}

Photo Photos::take(std::int64_t index) const {
  const std::scoped_lock lock(mutex_);
  auto node = outcomes_.extract(index);
  return node.empty() ? Photo{} : std::move(node.mapped());
}

}  // namespace millrace
