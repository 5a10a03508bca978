#include "millrace/dataflow/store/smaller_images.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "millrace/coco/picture/encode.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/detection/transforms.h"
#include "millrace/dataflow/image/image_file.h"

namespace millrace {

cv::Size SmallerImages::stored_size(cv::Size size) const {
  if (max_side == 0 || std::max(size.width, size.height) <= max_side) return size;
  return fitted_size(size, max_side, max_side);
}

Sample SmallerImages::stored(Sample sample) const {
  const cv::Size from(sample.width, sample.height), to = stored_size(from);
  if (to == from) return sample;
  resize(sample.objects, to.width, to.height,
         static_cast<float>(to.width) / static_cast<float>(from.width),
         static_cast<float>(to.height) / static_cast<float>(from.height));
  sample.width = to.width;
  sample.height = to.height;
  return sample;
}

std::string SmallerImages::stored_image(std::string bytes, const Sample& sample) const {
  const cv::Size from(sample.width, sample.height), to = stored_size(from);
  if (to == from) return bytes;
  const auto image = decode_rgb(bytes, sample.path, from, strict, /*enough=*/to, max_pixels);
  cv::Mat smaller;
  cv::resize(image, smaller, to, 0, 0, cv::INTER_AREA);
  return coco::encode_jpeg(smaller, quality);
}

}  // namespace millrace
