#include "millrace/dataflow/detection/test_time.h"

#include <utility>

#include "millrace/dataflow/image/image_file.h"

namespace millrace {

Sample TestTime::photo(std::string path, std::string_view bytes,
                       std::optional<cv::Size> annotated) const {
  auto pixels = decode_rgb(bytes, path, annotated, strict_decoding, /*enough=*/{}, max_pixels);
  const auto size = pixels.size();
  return {.path = std::move(path),
          .width = size.width,
          .height = size.height,
          .image = {std::move(pixels)}};
}

TestTime test_time(const DataOptions& data) {
  return {.short_side = data.settled_test_short_side(),
          .max_side = data.settled_test_max_side(),
          .style = data.resize_style,
          .reduced_decoding = data.eval_reduced_decoding,
          .strict_decoding = data.strict_decoding,
          .max_pixels = data.max_pixels,
          .divisor = data.divisor};
}

}  // namespace millrace
