#include "millrace/models/predict/test_image.h"

#include <fmt/format.h>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace {
namespace {

Sample pixels_of(const ImagePixels& image, const std::string& name) {
  check_image_head({image.width, image.height, /*pixels_per_byte=*/1}, image.bytes.size(), name,
                   /*max_pixels=*/0);  // the caller has decoded them
  const auto row = 3 * static_cast<std::size_t>(image.width);
  const auto stride = image.stride == 0 ? row : image.stride;
  const auto rows = static_cast<std::size_t>(image.height);
  if (stride < row)
    throw DataError(name, fmt::format("its stride is {} bytes, but a row of {} pixels has {}",
                                      stride, image.width, row));
  if (image.bytes.size() < row || (image.bytes.size() - row) / stride < rows - 1)
    throw DataError(
        name, fmt::format("{} x {} pixels in rows of {} bytes need more than the {} bytes given",
                          image.width, image.height, stride, image.bytes.size()));
  // Neither function writes to its input.
  const cv::Mat borrowed(image.height, image.width, CV_8UC3,
                         const_cast<std::uint8_t*>(image.bytes.data()), stride);
  cv::Mat pixels;
  if (image.order == PixelOrder::bgr)
    cv::cvtColor(borrowed, pixels, cv::COLOR_BGR2RGB);
  else
    borrowed.copyTo(pixels);
  return {.path = name, .width = image.width, .height = image.height, .image = {pixels}};
}

}  // namespace

Sample prepared(const PredictorImage& image, const TestTime& how, const std::string& name) {
  struct Take {
    const TestTime& how;
    const std::string& name;
    Sample operator()(const ImageFile& file) const {
      return how.photo(file.path.string(), read_image_file(file.path.string()));
    }
    Sample operator()(const ImageBytes& file) const { return how.photo(name, file.bytes); }
    Sample operator()(const ImagePixels& pixels) const { return pixels_of(pixels, name); }
  };
  return how.resized(std::visit(Take{how, name}, image));
}

}  // namespace millrace
