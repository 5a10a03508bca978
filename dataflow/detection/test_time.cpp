#include "millrace/dataflow/detection/test_time.h"

#include <utility>

#include "millrace/dataflow/image/image_file.h"

namespace millrace {

TestTime::TestTime(const DataOptions& data)
    : resize{.short_side = {data.settled_test_short_side()},
             .max_side = data.settled_test_max_side(),
             .style = data.resize_style},
      pad{.divisor = data.divisor} {
  decode = decode_for(resize, data.eval_reduced_decoding);
  decode.strict = data.strict_decoding;
  decode.max_pixels = data.max_pixels;
}

Sample TestTime::photo(std::string path, std::string_view bytes,
                       std::optional<cv::Size> annotated) const {
  auto pixels = decode_rgb(bytes, path, annotated, decode.strict, {}, decode.max_pixels);
  const auto size = pixels.size();
  return {.path = std::move(path),
          .width = size.width,
          .height = size.height,
          .image = {std::move(pixels)}};
}

Sample TestTime::resized(Sample sample) const {
  Rng unused{0};
  return resize(std::move(sample), unused);
}

}  // namespace millrace
