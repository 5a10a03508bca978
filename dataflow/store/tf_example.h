// A message of TensorFlow's Object Detection API (tf.train.Example): an image and its objects.
#pragma once

#include <string>
#include <string_view>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/store/sample_json.h"

namespace millrace {

struct TfExample {
  Sample sample;
  std::string_view image;  // bytes of the image file, a part of the message
};

/// Reads the features image/{encoded,filename,source_id,width,height} and image/object/
/// {bbox/xmin,bbox/ymin,bbox/xmax,bbox/ymax,class/text,class/label,is_crowd,mask}. Corners are
/// fractions of the image's sides, masks are PNGs of its size. A class without a text gets its
/// label as name. `where` is the prefix of error messages. Throws DataError.
TfExample read_tf_example(std::string_view message, const std::string& where, ClassNames& classes);

}  // namespace millrace
