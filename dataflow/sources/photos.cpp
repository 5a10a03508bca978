#include "millrace/dataflow/sources/photos.h"

#include <exception>
#include <optional>
#include <utility>

#include "millrace/dataflow/image/image_file.h"

namespace millrace {
namespace {

/// Returns the size of an image with missing or damaged data; empty if it cannot be decoded at all.
cv::Size size_of_damaged(const std::string& file, std::int64_t max_pixels) try {
  return decode_rgb(read_image_file(file), file, {}, /*strict=*/false, {}, max_pixels).size();
} catch (const std::exception&) {
  return {};
}

}  // namespace

Sample Photos::operator[](std::int64_t index) const {
  return {.image_id = index, .path = file(index).string()};
}

Sample Photos::read(std::int64_t index) const {
  const auto name = file(index).string();
  std::optional<cv::Size> annotated;
  if (!sizes_.empty() && !sizes_[static_cast<std::size_t>(index)].empty())
    annotated = sizes_[static_cast<std::size_t>(index)];
  auto sample = how_.photo(name, read_image_file(name), annotated);
  sample.image_id = index;
  return sample;
}

Sample Photos::decoded(Sample sample) const {
  const auto index = sample.image_id;
  Photo photo;
  try {
    sample = read(index);
    photo.size = {sample.width, sample.height};
  } catch (const std::exception& problem) {  // also OpenCV's exceptions
    sample = (*this)[index];
    photo = {size_of_damaged(sample.path, how_.decode.max_pixels), problem.what()};
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
