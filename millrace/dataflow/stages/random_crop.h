#pragma once

#include <opencv2/core/types.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Cuts a window out of the image: detectron2's RandomCrop, with its four ways to draw the window's
/// size. For training only: a sample knows nothing of the window's place.
struct RandomCrop {
  /// What `size` says: the window's, or its range; shares of the image's sides, or pixels.
  enum class Type { relative, relative_range, absolute, absolute_range };
  friend std::vector<std::string> value_names(Type) {
    return {"relative", "relative_range", "absolute", "absolute_range"};
  }

  static constexpr std::string_view kName = "random_crop";
  static constexpr std::string_view kAfter = "decode";
  Type type = Type::relative_range;
  Options::Reals size = {0.3, 0.3};
  bool keep_object = true;
  Visibility visibility;

  Sample operator()(Sample sample, Rng& rng) const;

  /// The window's size in an image of size `image`; never larger.
  cv::Size draw_size(cv::Size image, Rng& rng) const;
  /// The window. With `keep_object` it contains the centre of an object drawn at random that is not
  /// a crowd, as in detectron2, and leaves some of an object; where ten draws do not, it is the
  /// whole image.
  cv::Rect draw(const Sample& sample, Rng& rng) const;

  /// Throws std::invalid_argument for a `size` that the `type` cannot use.
  void check() const;

  void describe(Options& o) {
    o.add("crop_type", type, "how the size is drawn");
    o.add("size", size,
          "relative: shares of width and height; relative_range: their least; absolute: width and "
          "height in pixels; absolute_range: least and greatest side in pixels",
          {.min = 0, .max = 65535});
    o.add("keep_object", keep_object, "where there are objects, keep some of at least one");
    visibility.describe(o);
  }
};

}  // namespace millrace
